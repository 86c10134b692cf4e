"""First glimpses: what a payload is, computed once, within a token budget."""

from collections.abc import Callable, Mapping
from typing import cast

from ..records import Glimpse
from ._json import dumps, loads
from ._preview import visible, whole_clusters
from ._tokens import clip_tokens, estimate_tokens


def glimpse(
    value: object,
    *,
    content_type: str,
    size_bytes: int,
    budget_tokens: int,
    is_error: bool = False,
    line_count: int | None = None,
    length_chars: int | None = None,
    row_count: int | None = None,
    head_length: int | None = None,
) -> Glimpse | None:
    """Return a bounded summary of `value`, the same each time.

    Args:
        value: Text, bytes, a JSON value, an array of numpy, or a frame.
        content_type: Decides what text and bytes are taken for.
        size_bytes: Of the payload.
        budget_tokens: Most estimated tokens of the text; 0 gives no glimpse.
        is_error: Show the last lines of text.
        line_count: Lines of the whole text where they are known; counted otherwise.
        length_chars: Characters of the whole text, where `value` is its head and its tail.
        row_count: Rows of the whole array or table, where `value` has but some of them.
        head_length: Characters of `value` that are the head of a text, where the rest is its tail.

    Returns:
        None where the budget holds nothing, or there is nothing to say: of a number, or of text
        that any preview shows whole.

    >>> str(glimpse([{"id": 7}], content_type="application/json", size_bytes=10, budget_tokens=50))
    'array of 1 object {id: int}'
    """
    if budget_tokens <= 0:
        return None
    # What makes them takes a while to import, and who only reads on needs none of it.
    from ._glimpse_formats import Known, render

    known = Known(
        size_bytes=size_bytes,
        lines=line_count,
        chars=length_chars,
        rows=row_count,
        head_length=head_length,
        is_error=is_error,
    )
    rendered = render(value, content_type, budget_tokens, known)
    return None if rendered is None else Glimpse(*rendered)


def host_glimpse(
    make: Callable[[object], str | Glimpse], value: object, budget_tokens: int
) -> Glimpse | None:
    """Return the glimpse that a host's own function makes of `value`, clipped to the budget.

    Args:
        make: `Kind.glimpse`. It may raise anything.
        value: What `get` will return.
        budget_tokens: Most estimated tokens; 0 gives no glimpse, and nothing is called.

    Raises:
        TypeError: It returned neither text nor a `Glimpse`.
        UnencodableValueError: Its facts are no JSON values.
    """
    if budget_tokens <= 0:
        return None
    made = cast("object", make(value))
    if isinstance(made, str):
        made = Glimpse(made, {"format": "host"})
    if not isinstance(made, Glimpse):
        message = f"a kind's glimpse is a str or a Glimpse, got {type(made).__name__}"
        raise TypeError(message)
    facts = cast("Mapping[str, object]", loads(dumps(dict(made.facts))))
    return Glimpse(_clipped(visible(made.text), budget_tokens), facts)


def _clipped(text: str, budget_tokens: int) -> str:
    if estimate_tokens(text) <= budget_tokens:
        return text
    end = clip_tokens(text, budget_tokens)
    while end:
        clipped = whole_clusters(text, end).rstrip() + "…"
        if estimate_tokens(clipped) <= budget_tokens:
            return clipped
        end -= 1
    return ""
