"""What a service's refusals mean for a store. Its own text goes no further than this."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from ..errors import StoreUnavailableError

_Answer = TypeVar("_Answer")

# obstore gives no attributes: status, code and errno stand in its text only.
_STATUS = re.compile(r"\bstatus(?: code)?: ([1-5]\d\d)\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_SYSTEM = re.compile(r"\(os error (\d{1,4})\)")
_PAST_THE_END = re.compile(r"\bStartTooLarge\b")

_NO_PLACE = frozenset({"NoSuchBucket", "ContainerNotFound"})
_NO_ROOM = frozenset({"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"})
_FORBIDDEN = frozenset({401, 403})
_OUT_OF_RANGE = 416
_CANNOT = 501
_FULL = 507
_UNSETTLED = frozenset({408, 500, 502, 503, 504})
_SILENT = "the service did not answer"


class AbsentError(Exception):
    """No object lies under this key."""


class TakenError(Exception):
    """An object lies under this key already."""


class PastTheEndError(Exception):
    """A range begins where the object has ended."""


class ServiceRefusalError(Exception):
    """What of a service's answer may stand in a log: class, status and code, all of fixed form."""

    def __init__(self, name: str, status: int | None, code: str) -> None:
        super().__init__(" ".join(str(part) for part in (name, status, code) if part))
        self.status = status
        self.code = code


def answer_of(call: Callable[[], _Answer]) -> _Answer:
    """Return what a call of obstore returns.

    Raises:
        AbsentError: Nothing is there.
        TakenError: Something is there.
        PastTheEndError: Only of a range.
        StoreUnavailableError: Anything else, in words of ours.
    """
    from obstore.exceptions import BaseError

    try:
        return call()
    except StoreUnavailableError:  # of ours already, and an OSError too
        raise
    except (BaseError, OSError, NotImplementedError) as error:
        failure = _meaning(error)
    # Out here, so that the service's error is not its context, and in no log.
    raise failure


def is_answer(failure: StoreUnavailableError) -> bool:
    """Return whether the service is there: it said no, rather than nothing."""
    cause = failure.__cause__
    return isinstance(cause, ServiceRefusalError) and cause.status is not None


def no_answer() -> StoreUnavailableError:
    """Return what tells that the service is silent."""
    return StoreUnavailableError(_SILENT, unsettled=True)


def no_place() -> StoreUnavailableError:
    """Return what tells that the bucket or container is missing."""
    return StoreUnavailableError("there is no such bucket or container")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What can be read in the text of an error."""

    status: int | None
    code: str
    system: int | None
    is_past_the_end: bool

    @classmethod
    def of(cls, text: str) -> Self:
        status, code, system = (form.search(text) for form in (_STATUS, _CODE, _SYSTEM))
        number = None if status is None else int(status[1])
        return cls(
            status=number,
            code="" if code is None else code[1],
            # Beside an address it is about a connection, and no refusal.
            system=None if system is None or "://" in text else int(system[1]),
            is_past_the_end=number == _OUT_OF_RANGE or _PAST_THE_END.search(text) is not None,
        )

    @property
    def is_unsettled(self) -> bool:
        """Return whether the service may still do what it was asked for."""
        if self.system is not None:
            return False
        return self.status is None or self.status in _UNSETTLED


def _meaning(error: Exception) -> Exception:
    from obstore.exceptions import AlreadyExistsError

    facts = _Facts.of(str(error))
    if isinstance(error, AlreadyExistsError):
        return TakenError()
    if facts.code in _NO_PLACE:
        failure = no_place()
    elif isinstance(error, FileNotFoundError):
        return AbsentError()
    elif facts.is_past_the_end:
        return PastTheEndError()
    else:
        failure = StoreUnavailableError(_reason(error, facts), unsettled=facts.is_unsettled)
    failure.__cause__ = ServiceRefusalError(type(error).__name__, facts.status, facts.code)
    return failure


def _reason(error: Exception, facts: _Facts) -> str:
    from obstore.exceptions import NotSupportedError, PermissionDeniedError, UnauthenticatedError

    if facts.system is not None:
        return os.strerror(facts.system)
    if isinstance(error, NotImplementedError | NotSupportedError) or facts.status == _CANNOT:
        return "the service cannot create a key only where there is none"
    if (
        isinstance(error, PermissionDeniedError | UnauthenticatedError)
        or facts.status in _FORBIDDEN
    ):
        return "the service denies access"
    if facts.status == _FULL or facts.code in _NO_ROOM:
        return "the service has no room"
    if facts.status is not None:
        return f"the service answered with an error ({facts.status})"
    return _SILENT
