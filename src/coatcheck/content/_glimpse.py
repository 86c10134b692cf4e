"""First glimpses: what a payload is, computed once, within a token budget.

One function per format returns the text and its facts; each but the smallest has its own module.
"""

import re
from typing import cast

from ..records import Glimpse
from ._glimpse_blob import glimpse_blob
from ._glimpse_text import glimpse_text
from ._glimpse_tree import glimpse_tree
from ._json import loads

_MOST_PARSED_BYTES = 256 * 1024 * 1024
"""Text over this size is not parsed, bytes over it are not decoded, only to glimpse them."""

_JSON = re.compile(r"\s*application/(?:[\w.-]+\+)?json\s*(?:;|$)", re.ASCII | re.IGNORECASE)
_TEXT = re.compile(
    r"\s*(?:text/|application/(?:[\w.-]+\+)?(?:json|xml|yaml|javascript|x-ndjson)\s*(?:;|$))",
    re.ASCII | re.IGNORECASE,
)

_Rendered = tuple[str, dict[str, object]] | None


def glimpse(
    value: object,
    *,
    content_type: str,
    size_bytes: int,
    budget_tokens: int,
    is_error: bool = False,
    line_count: int | None = None,
) -> Glimpse | None:
    """Return a bounded summary of `value`, the same each time.

    Args:
        value: Text, bytes, or a JSON value.
        content_type: Decides what text and bytes are taken for.
        size_bytes: Of the payload.
        budget_tokens: Most estimated tokens of the text; 0 gives no glimpse.
        is_error: Show the last lines of text.
        line_count: Lines of a text where they are known; counted otherwise.

    Returns:
        None where the budget holds nothing, or there is nothing to say: of a number, or of text
        that any preview shows whole.

    >>> str(glimpse([{"id": 7}], content_type="application/json", size_bytes=10, budget_tokens=50))
    'array of 1 object {id: int}'
    """
    if budget_tokens <= 0:
        return None
    rendered: _Rendered
    if isinstance(value, (bytes, bytearray, memoryview)):
        # A header is looked at in place: a copy of the payload would cost as much as its put.
        payload = value if isinstance(value, bytes) else bytes(cast("bytes", value))
        rendered = _of_bytes(payload, content_type, size_bytes, budget_tokens, is_error=is_error)
    elif isinstance(value, str):
        rendered = _of_text(
            value, content_type, budget_tokens, is_error=is_error, line_count=line_count
        )
    else:
        rendered = glimpse_tree(value, budget_tokens)
    return None if rendered is None else Glimpse(*rendered)


def _of_text(
    text: str, content_type: str, budget_tokens: int, *, is_error: bool, line_count: int | None
) -> _Rendered:
    if _JSON.match(content_type) and len(text) <= _MOST_PARSED_BYTES:
        try:
            value = loads(text.encode("utf-8", "surrogatepass"))
        except ValueError:
            value = None
        tree = glimpse_tree(value, budget_tokens)
        if tree is not None:
            return tree
    return glimpse_text(text, budget_tokens, line_count=line_count, is_error=is_error)


def _of_bytes(
    payload: bytes, content_type: str, size_bytes: int, budget_tokens: int, *, is_error: bool
) -> _Rendered:
    if _TEXT.match(content_type) and size_bytes <= _MOST_PARSED_BYTES:
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            pass
        else:
            return _of_text(text, content_type, budget_tokens, is_error=is_error, line_count=None)
    return glimpse_blob(payload, content_type, size_bytes, budget_tokens)
