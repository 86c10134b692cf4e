"""What the caller of a put asked for, checked; and its value, encoded. Nothing is written here."""

import re
from collections.abc import Mapping
from typing import Self, cast

from ..content import Encoding, dumps, encode, loads, names_text
from ..errors import InvalidArgumentError, shown
from ..records import Limits, dataclass
from ._keys import LONGEST_NAME, is_name
from ._threads import work_on

_LONGEST_PREVIEW = 4_000
_HEAD_CHARS = 1_024
_LONGEST_TTL_SECONDS = 100 * 365 * 24 * 3_600
_CONTENT_TYPE = re.compile("[!-~][ -~]{0,199}")
"""Printable, and short: it stands in envelopes and listings, and a model may give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the caller of a put asked for, checked."""

    name: str | None
    label: str | None
    kind: str
    preview_chars: int
    shown_chars: int
    ttl_ns: int | None
    source: Mapping[str, object] | None
    tool: str | None
    run: str | None
    is_error: bool

    @classmethod
    def checked(
        cls,
        limits: Limits,
        *,
        name: str | None,
        label: str | None,
        kind: str,
        content_type: str | None,
        preview_chars: int | None,
        shown_chars: int | None,
        ttl_seconds: float | None,
        source: Mapping[str, object] | None,
        tool: str | None,
        run: str | None,
        is_error: bool,
    ) -> Self:
        """Check what a put was asked for, before anything is written.

        Raises:
            InvalidArgumentError: A name, content type, length or time outside its rule.
            UnencodableValueError: `source` is not plain JSON.
        """
        if name is not None and not is_name(name):
            raise InvalidArgumentError(
                f"a name has 1 to {LONGEST_NAME} printable characters and is no pointer, "
                f"got {shown(name)}",
                "Leave the name out, or choose a short label.",
            )
        if content_type is not None and not _CONTENT_TYPE.fullmatch(content_type):
            raise InvalidArgumentError(
                f"a content type has 1 to 200 printable ASCII characters, got "
                f"{shown(content_type)}",
                "Give a MIME type such as text/plain, or leave the content type out.",
            )
        if ttl_seconds is not None and not 0 < ttl_seconds <= _LONGEST_TTL_SECONDS:
            raise InvalidArgumentError(
                f"ttl_seconds must be more than 0 and at most 100 years, got {ttl_seconds}"
            )
        # A copy: what the caller changes in it later was not stored.
        lineage = cast("Mapping[str, object] | None", loads(dumps(source)))
        return cls(
            name=name,
            label=None if label is None else label.strip() or kind,
            kind=kind,
            preview_chars=_length("preview_chars", preview_chars, limits.banked_preview_chars),
            shown_chars=_length("shown_chars", shown_chars, limits.preview_chars),
            ttl_ns=None if ttl_seconds is None else int(ttl_seconds * 1_000_000_000),
            source=lineage,
            tool=tool,
            run=run,
            is_error=is_error,
        )


async def encoded(value: object, content_type: str | None, *, owned: bool) -> Encoding:
    """Return a value ready to be stored, large text encoded off the event loop.

    Raises:
        UnencodableValueError: The value has no lossless encoding.
        ValueError: A content type beside an `Encoding`, which has its own.
    """
    if isinstance(value, Encoding):
        if content_type is not None:
            raise ValueError("an Encoding has its content type: give that to `encode`")
        return value
    if isinstance(value, str | bytes):
        return await work_on(_looked_through(value, content_type), encode, value, content_type)
    # All else here: others may change it meanwhile, and how large it is nobody knows. A thread
    # would not free the loop, as making JSON holds the GIL to its end.
    return encode(value, content_type, owned=owned)


def _looked_through(value: str | bytes, content_type: str | None) -> int:
    """Return how much of text or bytes `encode` looks through: mostly nothing but their head."""
    if isinstance(value, bytes):
        is_checked = content_type is not None and names_text(content_type)
    else:
        is_checked = content_type is None and value[:_HEAD_CHARS].lstrip()[:1] in {"{", "["}
    return len(value) if is_checked else 0


def _length(what: str, asked: int | None, default: int) -> int:
    if asked is None:
        return min(default, _LONGEST_PREVIEW)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked < 0:
        raise InvalidArgumentError(f"{what} must be a whole number, 0 or more, got {shown(asked)}")
    return min(asked, _LONGEST_PREVIEW)
