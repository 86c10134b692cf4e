"""What a service's refusals mean, in the forms that obstore gives them."""

from collections.abc import Callable
from typing import NoReturn

import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from coatcheck.errors import StoreUnavailableError
from coatcheck.stores._answers import (
    AbsentError,
    PastTheEndError,
    TakenError,
    answer_of,
    is_answer,
)

URL = "https://bucket.example/hush?sig=hush"


def raising(error: Exception) -> Callable[[], NoReturn]:
    def call() -> NoReturn:
        raise error

    return call


def status(number: int, code: str = "") -> str:
    return (
        f"Generic S3 error: Error performing PUT {URL} in 2ms - Server returned non-2xx status "
        f"code: {number} Whatever: <Error><Code>{code}</Code><Message>hush</Message></Error>"
        f"\n\nDebug source:\nGeneric {{ inner: Status {{ status: {number}, }} }}"
    )


def test_an_answer_comes_through() -> None:
    assert answer_of(lambda: 7) == 7


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (FileNotFoundError(status(404, "NoSuchKey")), AbsentError),
        (FileNotFoundError("Object at location /a not found: is directory"), AbsentError),
        (AlreadyExistsError(status(412, "PreconditionFailed")), TakenError),
        (GenericError(status(416, "InvalidRange")), PastTheEndError),
        (GenericError("source: InvalidRange { source: StartTooLarge {"), PastTheEndError),
    ],
)
def test_what_is_no_outage_is_told_apart(error: Exception, meaning: type[Exception]) -> None:
    with pytest.raises(meaning) as caught:
        answer_of(raising(error))

    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("error", "reason", "unsettled"),
    [
        (FileNotFoundError(status(404, "NoSuchBucket")), "there is no such bucket", False),
        (GenericError(status(404, "ContainerNotFound")), "there is no such bucket", False),
        (PermissionDeniedError(status(403, "AccessDenied")), "denies access", False),
        (UnauthenticatedError("no token"), "denies access", True),
        (GenericError(status(401)), "denies access", False),
        (OSError(status(403)), "denies access", False),
        (NotImplementedError("`put_opts`"), "cannot create a key", True),
        (NotSupportedError("copy"), "cannot create a key", True),
        (GenericError(status(501, "NotImplemented")), "cannot create a key", False),
        (GenericError(status(507)), "has no room", False),
        (GenericError(status(400, "QuotaExceeded")), "has no room", False),
        (GenericError(status(500, "InternalError")), r"an error \(500\)", True),
        (GenericError(status(503, "SlowDown")), r"an error \(503\)", True),
        (GenericError(status(400, "Hush")), r"an error \(400\)", False),
        (GenericError(f"Error performing GET {URL} - HTTP error: timed out"), "not answer", True),
        (GenericError(f"GET {URL}: Connection refused (os error 111)"), "not answer", True),
        (GenericError("Unable to open file /a: Permission denied (os error 13)"),
         "Permission denied", False),
        (OSError("Unable to write: No space left on device (os error 28)"),
         "No space left on device", False),
    ],
)  # fmt: skip
def test_an_outage_is_told_in_words_of_ours(error: Exception, reason: str, unsettled: bool) -> None:
    with pytest.raises(StoreUnavailableError, match=reason) as caught:
        answer_of(raising(error))

    failure = caught.value
    assert failure.unsettled == unsettled
    assert is_answer(failure) == ("status" in str(error))
    assert failure.__context__ is None
    assert "hush" not in f"{failure} {failure.__cause__}"


def test_an_error_of_ours_and_one_of_the_program_pass_as_they_are() -> None:
    ours = StoreUnavailableError("the disk")
    with pytest.raises(StoreUnavailableError) as caught:
        answer_of(raising(ours))
    assert caught.value is ours

    with pytest.raises(TypeError, match="wrong"):
        answer_of(raising(TypeError("wrong")))
