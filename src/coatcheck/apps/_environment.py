"""Which store a program uses where nobody named one: what its environment says of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from ..errors import InvalidArgumentError, shown

_STORE = "COATCHECK_STORE"
_URL = "REDIS_URL"
_HOST = "REDIS_HOST"
_TTL = "REDIS_TTL"
_REDIS_PORT = "6379"
_SCHEMES = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True, slots=True)
class NamedStore:
    """The address of a store, and which variable named it."""

    address: str
    variable: str


def named_store(environment: Mapping[str, str]) -> NamedStore | None:
    """Return the store that variables name, None where they name none. An empty one counts as none.

    The first that is there decides alone: ``COATCHECK_STORE``, any address; ``REDIS_URL``, of a
    Redis server; ``REDIS_HOST``, with ``REDIS_PORT``, ``REDIS_USERNAME``, ``REDIS_PASSWORD`` and
    ``REDIS_DB``. ``REDIS_TTL`` goes with the last two: seconds. A prefix of keys is never taken
    from a variable, as that is another program's.

    Raises:
        InvalidArgumentError: A number is none, or ``REDIS_URL`` is of no Redis server.

    >>> named_store({"REDIS_HOST": "cache", "REDIS_DB": "2", "REDIS_URL": ""})
    NamedStore(address='redis://cache:6379/2', variable='REDIS_HOST')
    """
    if environment.get(_STORE):
        return NamedStore(environment[_STORE], _STORE)
    if environment.get(_URL):
        url = environment[_URL]
        if not url.startswith(_SCHEMES):
            forms = ", ".join(f"{scheme}…" for scheme in _SCHEMES)
            raise InvalidArgumentError(
                f"{_URL} is one of {forms}", f"Set {_URL} anew, or {_STORE}."
            )
        return NamedStore(url + _lasting(environment, "&" if "?" in url else "?"), _URL)
    if environment.get(_HOST):
        return NamedStore(_of_parts(environment) + _lasting(environment, "?"), _HOST)
    return None


def _of_parts(environment: Mapping[str, str]) -> str:
    host = environment[_HOST]
    user, password = (environment.get(f"REDIS_{part}", "") for part in ("USERNAME", "PASSWORD"))
    credentials = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user or password else ""
    port, database = (
        _whole_number(environment, name, default)
        for name, default in (("REDIS_PORT", _REDIS_PORT), ("REDIS_DB", "0"))
    )
    place = f"[{host}]" if ":" in host else quote(host, safe="")
    return f"redis://{credentials}{place}:{port}/{database}"


def _whole_number(environment: Mapping[str, str], name: str, default: str) -> str:
    text = environment.get(name) or default
    if not (text.isascii() and text.isdecimal()):
        raise _no_number(name, text)
    return text


def _lasting(environment: Mapping[str, str], separator: str) -> str:
    text = environment.get(_TTL)
    if not text:
        return ""
    try:
        float(text)
    except ValueError:
        raise _no_number(_TTL, text) from None
    return separator + urlencode({"ttl_seconds": text})


def _no_number(name: str, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{name} is a number, got {shown(text)}.", f"Set {name} anew.")
