"""The exception tree. Each error says what happened, and hints at what to do next.

```
CoatcheckError
├── PointerError
│   ├── InvalidPointerError      not a pointer, or not one that may stand here      (ValueError)
│   ├── UnknownPointerError      well formed, but nothing stands behind it          (LookupError)
│   ├── ExpiredPointerError      what stood behind it has passed its time           (LookupError)
│   └── NothingSelectedError     its selector picks nothing of what stands behind   (LookupError)
├── InvalidArgumentError         a window, name or search outside its rule          (ValueError)
├── InvalidQueryError            a query that is wrong, or not allowed              (ValueError)
├── DeadlineError                work took longer than it may                       (TimeoutError)
├── QuotaError                   an artifact larger than all that may be kept       (ValueError)
├── BinaryPayloadError           text was asked of a payload that holds none        (TypeError)
├── UnencodableValueError        a value without a lossless encoding                (ValueError)
├── InvalidPlanError             a plan that cannot be run as it stands             (ValueError)
├── NoPlanError                  a planner came to no plan
├── RunCancelledError            the run was cancelled, and its work stopped
├── ModelError                   a model could not be asked, or its provider failed
└── StoreError
    ├── StoreUnavailableError    the backend did not answer, or has no room         (OSError)
    ├── StoreFormatError         written by a version this one cannot read          (ValueError)
    │   └── DamagedRecordError   what the store says of an artifact cannot be read  (ValueError)
    └── DamagedPayloadError      a payload is not what was stored                   (ValueError)
```

A host's own mistakes (a negative limit in a constructor) are plain `ValueError` or `TypeError`;
whatever a model can cause is a `CoatcheckError`. No message or hint quotes a payload.
"""

from collections.abc import Sequence
from typing import ClassVar

from ._quoted import brief, head, shown

__all__ = [
    "BinaryPayloadError",
    "CoatcheckError",
    "DamagedPayloadError",
    "DamagedRecordError",
    "DeadlineError",
    "ExpiredPointerError",
    "InvalidArgumentError",
    "InvalidPlanError",
    "InvalidPointerError",
    "InvalidQueryError",
    "ModelError",
    "NoPlanError",
    "NothingSelectedError",
    "PointerError",
    "QuotaError",
    "RunCancelledError",
    "StoreError",
    "StoreFormatError",
    "StoreUnavailableError",
    "UnencodableValueError",
    "UnknownPointerError",
    "shown",
]

_LANGUAGES = {"sql": "SQL", "jsonpath": "JSONPath", "jmespath": "JMESPath"}


class CoatcheckError(Exception):
    """Root of everything this library raises on purpose."""

    code: ClassVar[str] = "error"
    hint: str = ""


class PointerError(CoatcheckError):
    """Something is wrong with a pointer or a name."""


class InvalidPointerError(PointerError, ValueError):
    """The text is no pointer, or none that may stand here.

    Args:
        text: As it was given.
        begins_well: Only what follows ``#`` is wrong.
    """

    code = "invalid-argument"
    hint = (
        "Use a pointer exactly as it was shown: art: and a UUID. A selector may follow: "
        "#/0/id, #$[*].id, #L10-L20, #line=0,10, #char=0,100 or #row=5-7."
    )

    def __init__(self, text: object, *, begins_well: bool = False) -> None:
        if not begins_well:
            super().__init__(f"{shown(text)} is not a pointer.")
        else:
            super().__init__(f"{shown('#' + str(text).partition('#')[2])} is no selector.")
            self.hint = (
                "Leave it out, or give a selector: #/0/id, #$[*].id, #L10 or #L10-L20 (from 1, "
                "both included), #line=9, (from 0, to the end), #char=0,100 or #row=5-7."
            )
        self.text = text


class UnknownPointerError(PointerError, LookupError):
    """The pointer or name is well formed, but no artifact stands behind it.

    Args:
        pointer: As it was asked for.
        nearest: Pointers of the same scope that may have been meant.
        passing: Whether the store ends with its process.
    """

    code = "unknown-pointer"

    def __init__(self, pointer: str, nearest: Sequence[str] = (), *, passing: bool = False) -> None:
        super().__init__(f"No artifact behind {shown(pointer)}.")
        self.pointer = pointer
        self.nearest = tuple(nearest)
        self.hint = "Use a pointer exactly as it was shown: art: and a UUID."
        if nearest:
            self.hint += f" Nearest here: {', '.join(nearest)}."
        elif passing:
            self.hint += (
                " Nothing is banked in this scope; this store is in memory, and ends with its"
                " process. One such as file:DIR stays."
            )


class ExpiredPointerError(PointerError, LookupError):
    """An artifact stood behind the pointer, but its time has passed, or it had to make room.

    Args:
        pointer: As it was asked for.
        name: What the artifact was called.
        size_bytes: Of its payload.
        tool: Which tool returned it.
        glimpse: What was shown of it. It tells of a payload, so neither message nor hint has it.
    """

    code = "expired"
    hint = "Run the tool again to get a fresh result."

    def __init__(
        self,
        pointer: str,
        *,
        name: str | None = None,
        size_bytes: int | None = None,
        tool: str | None = None,
        glimpse: str | None = None,
    ) -> None:
        facts = [
            "" if name is None else f"named {brief(name)}",
            "" if size_bytes is None else f"{size_bytes:,} bytes",
            "" if tool is None else f"from the tool {brief(tool)}",
        ]
        was = ", ".join(filter(None, facts))
        super().__init__(f"The artifact behind {shown(pointer)} has expired{was and f' ({was})'}.")
        self.pointer = pointer
        self.name = name
        self.size_bytes = size_bytes
        self.tool = tool
        self.glimpse = glimpse


class NothingSelectedError(PointerError, LookupError):
    """A selector matches nothing of the artifact, or is none for its format.

    Args:
        pointer: With its selector.
        reason: Why nothing is selected, in one clause.
        hint: What the artifact has instead: its columns, keys, number of lines or rows.
    """

    code = "not-found"

    def __init__(self, pointer: str, reason: str, hint: str) -> None:
        super().__init__(f"{shown(pointer)} selects nothing: {reason}.")
        self.pointer = pointer
        self.reason = reason
        self.hint = hint


class InvalidArgumentError(CoatcheckError, ValueError):
    """An argument breaks a rule. The message names the rule, the hint the remedy."""

    code = "invalid-argument"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class InvalidQueryError(CoatcheckError, ValueError):
    """A query is wrong, asks for what is not there, or for what is not allowed.

    Args:
        language: What the expression was taken for: ``sql``, ``jsonpath`` or ``jmespath``.
        reason: What is wrong, in one clause.
        hint: What to write instead.
    """

    code = "invalid-query"

    def __init__(self, language: str, reason: str, hint: str = "") -> None:
        super().__init__(f"Read as {_LANGUAGES[language]}: {reason}.")
        self.language = language
        self.reason = reason
        self.hint = hint


class DeadlineError(CoatcheckError, TimeoutError):
    """Work that a model asked for took longer than it may, and was stopped."""

    code = "deadline"

    def __init__(self, what: str, seconds: float, hint: str = "") -> None:
        super().__init__(f"{what} was stopped after {seconds:g} s.")
        self.seconds = seconds
        self.hint = hint or "Ask for less: filter first, or a simpler pattern."


class QuotaError(CoatcheckError, ValueError):
    """An artifact alone takes more than a quota lets a scope, or a store, hold. It was not kept.

    Args:
        size_bytes: What it takes.
        quota_bytes: What may be kept.
        whose: ``scope`` or ``store``.
        is_all: False of a stream that was read no further.
    """

    code = "invalid-argument"

    def __init__(
        self, size_bytes: int, quota_bytes: int, whose: str, *, is_all: bool = True
    ) -> None:
        super().__init__(
            f"The value takes {'' if is_all else 'at least '}{size_bytes:,} bytes, and the quota "
            f"of this {whose} is {quota_bytes:,} bytes."
        )
        self.size_bytes = size_bytes
        self.quota_bytes = quota_bytes
        self.hint = f"Keep less of it, or raise Limits.{whose}_bytes."


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
        elif content_type == "application/octet-stream":
            self.hint += " Text is read if it is banked as str, or with a content type of text."
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


class InvalidPlanError(CoatcheckError, ValueError):
    """A plan cannot be run as it stands. Nothing of it was run, and nothing written.

    Args:
        problems: Each thing that is wrong, in one clause that names it.
    """

    code = "invalid-argument"
    hint = "Correct what is named, and hand in the plan again."

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"The plan cannot be run: {'; '.join(problems)}.")
        self.problems = tuple(problems)


class NoPlanError(CoatcheckError):
    """A planner came to no plan, so that nothing was run.

    Args:
        reason: Why, in one clause.
    """

    code = "no-plan"
    hint = "Say more of what is wanted, or hand in a plan."

    def __init__(self, reason: str) -> None:
        super().__init__(f"There is no plan: {head(reason)}")
        self.reason = reason


class RunCancelledError(CoatcheckError):
    """The run was cancelled. What had ended before stands."""

    code = "cancelled"
    hint = "Start the run again: what it finished is not done twice."

    def __init__(self, reason: str = "") -> None:
        super().__init__(
            f"The run was cancelled: {reason}." if reason else "The run was cancelled."
        )
        self.reason = reason


class ModelError(CoatcheckError):
    """A model gave no reply.

    Args:
        model: Its name.
        reason: What went wrong, in the words of its provider; the message has its head.
    """

    code = "model-unavailable"
    hint = "Try again later, or with another model."

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"The model {shown(model)} failed: {head(reason)}")
        self.model = model
        self.reason = reason


class StoreError(CoatcheckError):
    """Something is wrong with where payloads lie."""


class StoreUnavailableError(StoreError, OSError):
    """The backend did not answer, refused, or has no room. Nothing half-written is visible.

    Args:
        reason: Why, in one clause, without any text of the backend's own.
        unsettled: Whether the backend may still do what it was asked for, as it fell silent: a
            write may become visible after this, whole.
    """

    code = "store-unavailable"
    hint = "The store is out of reach; try again later."

    def __init__(self, reason: str, *, unsettled: bool = False) -> None:
        super().__init__(f"The store is unavailable: {reason}.")
        self.reason = reason
        self.unsettled = unsettled


class StoreFormatError(StoreError, ValueError):
    """The store was written by a version that this one cannot read."""

    code = "store-unavailable"
    hint = "Use the Coatcheck version that wrote this store, or another folder."

    def __init__(self, reason: str) -> None:
        super().__init__(f"The store has another format: {reason}.")
        self.reason = reason


class DamagedRecordError(StoreFormatError):
    """The record of one artifact is cut, altered, or not its own. All others can be read."""

    hint = "Delete the artifact, and run the tool again to get a fresh result."

    def __init__(self, pointer: str) -> None:
        StoreError.__init__(self, f"The record of {shown(pointer)} is damaged.")
        self.reason = "a record is damaged"
        self.pointer = pointer


class DamagedPayloadError(StoreError, ValueError):
    """A payload is missing, cut or altered, although its record says it is there."""

    code = "store-unavailable"
    hint = "Run the tool again to get a fresh result."

    def __init__(self, pointer: str) -> None:
        super().__init__(f"The payload behind {shown(pointer)} is not what was stored.")
        self.pointer = pointer
