"""The exception tree. Each error says what happened, and hints at what to do next.

```
CoatcheckError
├── PointerError
│   ├── InvalidPointerError      not a pointer, or not one that may stand here      (ValueError)
│   ├── UnknownPointerError      well formed, but nothing stands behind it          (LookupError)
│   └── ExpiredPointerError      what stood behind it has passed its time           (LookupError)
├── InvalidArgumentError         a window, name or search outside its rule          (ValueError)
├── BinaryPayloadError           text was asked of a payload that holds none        (TypeError)
├── UnencodableValueError        a value without a lossless encoding                (ValueError)
└── StoreError
    ├── StoreUnavailableError    the backend did not answer, or has no room         (OSError)
    ├── StoreFormatError         written by a version this one cannot read          (ValueError)
    └── DamagedPayloadError      a payload is not what was stored                   (ValueError)
```

A host's own mistakes (a negative limit in a constructor) are plain `ValueError` or `TypeError`;
whatever a model can cause is a `CoatcheckError`. No message or hint quotes a payload.
"""

from collections.abc import Sequence
from typing import ClassVar

_SHOWN_CHARS = 80


def shown(text: object) -> str:
    """Return `text` quoted for a message, cut to 80 characters.

    >>> shown("art:x")
    "'art:x'"
    >>> len(shown("x" * 4_000))
    91
    """
    whole = text if isinstance(text, str) else repr(text)
    if len(whole) <= _SHOWN_CHARS:
        return repr(text)
    return f"{whole[:_SHOWN_CHARS]!r}… ({len(whole):,})"


class CoatcheckError(Exception):
    """Root of everything this library raises on purpose."""

    code: ClassVar[str] = "error"
    hint: str = ""


class PointerError(CoatcheckError):
    """Something is wrong with a pointer or a name."""


class InvalidPointerError(PointerError, ValueError):
    """The text is no pointer, or none that may stand here."""

    code = "invalid-argument"
    hint = "Use a pointer exactly as it was shown: art: and a UUID."

    def __init__(self, text: object) -> None:
        super().__init__(f"{shown(text)} is not a pointer.")
        self.text = text


class UnknownPointerError(PointerError, LookupError):
    """The pointer or name is well formed, but no artifact stands behind it."""

    code = "unknown-pointer"

    def __init__(self, pointer: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(f"No artifact behind {shown(pointer)}.")
        self.pointer = pointer
        self.nearest = tuple(nearest)
        self.hint = "Use a pointer exactly as it was shown: art: and a UUID."
        if nearest:
            self.hint += f" Nearest here: {', '.join(nearest)}."


class ExpiredPointerError(PointerError, LookupError):
    """An artifact stood behind the pointer, but its time has passed."""

    code = "expired"
    hint = "Run the tool again to get a fresh result."

    def __init__(self, pointer: str) -> None:
        super().__init__(f"The artifact behind {shown(pointer)} has expired.")
        self.pointer = pointer


class InvalidArgumentError(CoatcheckError, ValueError):
    """An argument breaks a rule. The message names the rule, the hint the remedy."""

    code = "invalid-argument"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BinaryPayloadError(CoatcheckError, TypeError):
    """Text was asked of a payload that holds none."""

    code = "binary"

    def __init__(self, pointer: str, content_type: str, size_bytes: int, glimpse: str = "") -> None:
        what = glimpse or f"{content_type}, {size_bytes:,} bytes"
        if content_type not in what:
            what = f"{content_type}: {what}"
        super().__init__(f"{shown(pointer)} is binary ({what}) and cannot be read as text.")
        self.hint = "Pass the pointer to a tool that takes this type."
        if content_type.startswith("text/"):
            self.hint += " Its bytes are not UTF-8: bank it as decoded text to read it."
        self.pointer = pointer
        self.content_type = content_type
        self.size_bytes = size_bytes
        self.glimpse = glimpse


class UnencodableValueError(CoatcheckError, ValueError):
    """The value has no encoding that would give it back equal.

    Args:
        reason: What in it has none.
        endless: Whether it contains itself, or nests without a bound worth following.
    """

    code = "invalid-argument"
    hint = "Return text, bytes, or plain JSON values: None, bool, int, float, str, list, dict."

    def __init__(self, reason: str, *, endless: bool = False) -> None:
        super().__init__(f"The value cannot be encoded: {reason}.")
        self.reason = reason
        self.endless = endless


class StoreError(CoatcheckError):
    """Something is wrong with where payloads lie."""


class StoreUnavailableError(StoreError, OSError):
    """The backend did not answer, refused, or has no room. Nothing half-written is visible."""

    code = "store-unavailable"
    hint = "The store is out of reach; try again later."

    def __init__(self, reason: str) -> None:
        super().__init__(f"The store is unavailable: {reason}.")
        self.reason = reason


class StoreFormatError(StoreError, ValueError):
    """The store was written by a version that this one cannot read."""

    code = "store-unavailable"
    hint = "Use the Coatcheck version that wrote this store, or another folder."

    def __init__(self, reason: str) -> None:
        super().__init__(f"The store has another format: {reason}.")
        self.reason = reason


class DamagedPayloadError(StoreError, ValueError):
    """A payload is missing, cut or altered, although its record says it is there."""

    code = "store-unavailable"
    hint = "Run the tool again to get a fresh result."

    def __init__(self, pointer: str) -> None:
        super().__init__(f"The payload behind {shown(pointer)} is not what was stored.")
        self.pointer = pointer
