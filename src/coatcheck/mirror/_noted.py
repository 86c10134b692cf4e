"""What the journal keeps of a mirrored call: told from its arguments, and from what was shown."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

from ..bank import TOOL, Bank, Journal
from ..content import dumps, estimate_tokens
from ..errors import UnencodableValueError
from ..records import Envelope
from ._call import current_call
from ._slots import Argument
from ._turn import ToolResult

_LOOKED_AT_CHARS = 2_048
"""Characters of a text by which the tokens of all of it are estimated."""
_TOKENS_PER_BYTE = 0.4
"""Of a payload without a preview: numbers, written out."""


def noted(
    mirrored: Callable[..., Any], journal: Journal, bank: Bank, tool: str
) -> Callable[..., Any]:
    """Return a mirrored function that also notes each of its calls."""

    def note(shown: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        note_result(journal, bank, tool, shown, given=(*args, *kwargs.values()))

    def note_failure(args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        pointers = pointers_in((*args, *kwargs.values()))
        journal.note(
            verb=TOOL,
            tool=tool,
            scope=bank.scope,
            run=bank.current_run,
            pointers_in=pointers,
            is_error=True,
        )

    async def waiting(
        shown: Awaitable[object], args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        try:
            awaited = await shown
        except BaseException:
            note_failure(args, kwargs)
            raise
        note(awaited, args, kwargs)
        return awaited

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            shown = mirrored(*args, **kwargs)
        except BaseException:
            note_failure(args, kwargs)
            raise
        if inspect.isawaitable(shown):
            return waiting(cast("Awaitable[object]", shown), args, kwargs)
        note(shown, args, kwargs)
        return shown

    async def call_waiting(*args: Any, **kwargs: Any) -> object:
        return await waiting(mirrored(*args, **kwargs), args, kwargs)

    return call_waiting if inspect.iscoroutinefunction(mirrored) else call


def note_result(
    journal: Journal,
    bank: Bank,
    tool: str | None,
    shown: object,
    *,
    given: Iterable[object] = (),
    is_error: bool = False,
) -> None:
    """Note what a model was shown of one call's result, unless whoever made the call will."""
    call = current_call()
    if call is not None and call.takes_note(tool, given):
        return
    note_results(journal, bank, tool, (shown,), given=given, is_error=is_error)


def note_turn(
    journal: Journal, bank: Bank, results: Iterable[ToolResult], shown: Iterable[object]
) -> None:
    """Note what a model was shown of the calls of one turn, but for those noted before."""
    for result, what in zip(results, shown, strict=True):
        if not result.is_noted:
            note_results(
                journal, bank, result.tool, (what,), given=result.given, is_error=result.is_error
            )


def note_results(
    journal: Journal,
    bank: Bank,
    tool: str | None,
    shown: Iterable[object],
    *,
    given: Iterable[object] = (),
    is_error: bool = False,
) -> None:
    """Note what a model was shown of the parts of one call's result."""
    size_bytes = tokens = shown_tokens = 0
    pointers_out: list[str] = []
    for part in shown:
        if isinstance(part, Envelope):
            sample = part.preview.encode("utf-8", "replace")
            rate = estimate_tokens(part.preview) / len(sample) if sample else _TOKENS_PER_BYTE
            size_bytes += part.size_bytes
            tokens += int(part.size_bytes * rate)
            shown_tokens += _tokens(str(part))
            pointers_out.append(part.pointer)
        else:
            text = _text(part)
            part_tokens = _tokens(text)
            size_bytes += len(text.encode("utf-8", "surrogatepass"))
            tokens += part_tokens
            shown_tokens += part_tokens
    journal.note(
        verb=TOOL,
        tool=tool,
        scope=bank.scope,
        run=bank.current_run,
        pointers_in=pointers_in(given),
        pointers_out=tuple(pointers_out),
        size_bytes=size_bytes,
        tokens=tokens,
        shown_tokens=shown_tokens,
        is_error=is_error,
    )


def pointers_in(given: Iterable[object]) -> tuple[str, ...]:
    """Return the pointers among the arguments of a call, each once."""
    slots = (slot for value in given for slot in Argument(value).slots)
    return tuple(dict.fromkeys(slot.pointer for slot in slots))


def _text(shown: object) -> str:
    if isinstance(shown, str):
        return shown
    try:
        return dumps(shown).decode("utf-8", "replace")
    except (UnencodableValueError, TypeError):
        return repr(shown)


def _tokens(text: str) -> int:
    head = text[:_LOOKED_AT_CHARS]
    return int(estimate_tokens(head) * len(text) / len(head)) if head else 0
