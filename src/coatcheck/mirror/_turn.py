"""All results of one turn within one budget: the largest are offloaded first."""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

from ..errors import UnencodableValueError
from ..records import Envelope
from ._offloader import Offloader
from ._shown import shown_size


class ToolResult(NamedTuple):
    """What one call of a turn returned."""

    value: object
    tool: str | None = None
    call_id: str | None = None
    is_error: bool = False
    given: tuple[object, ...] = ()
    """The arguments, of which the journal keeps the pointers."""
    is_shown: bool = False
    """Whether the value is what `Mirror.offload` returned for it."""
    is_noted: bool = False
    """Whether the journal knows of the call."""


async def fit_turn(
    offloader: Offloader,
    results: Sequence[ToolResult],
    shown: MutableSequence[object],
    turn_bytes: int,
) -> None:
    """Replace in `shown` the largest results by envelopes, until all take `turn_bytes` or less.

    Where that cannot be, all that can be offloaded is.
    """
    sizes = [_size(value, turn_bytes) for value in shown]
    total_bytes = sum(sizes)

    def order(at: int) -> tuple[int, str, str, int]:
        result = results[at]
        return -sizes[at], result.tool or "", result.call_id or "", at

    for at in sorted(range(len(sizes)), key=order):
        if total_bytes <= turn_bytes:
            return
        if isinstance(shown[at], Envelope):
            continue
        value, tool, call_id, is_error = results[at][:4]
        if type(value) is not type(shown[at]):
            value = shown[at]  # it was a stream, and is used up
        shown[at] = await offloader.offload(value, tool, call_id, limit_bytes=1, is_error=is_error)
        total_bytes += _size(shown[at], turn_bytes) - sizes[at]


def _size(shown: object, turn_bytes: int) -> int:
    try:
        return shown_size(shown, turn_bytes)
    except UnencodableValueError:
        return len(repr(shown).encode("utf-8", "replace"))
