"""Older tool results of a conversation become pointers, seldom and always the same ones."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import cast

from ..content import encoded_size
from ..errors import UnencodableValueError
from ..mirror import Mirror, ToolResult
from ..records import Envelope, is_pointer
from ._sessions import Session

_LEAST_BYTES = 2_000
"""Of a smaller result an envelope would save little."""

_LONGEST_ENVELOPE_CHARS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PastResult:
    """A tool result of a conversation, as it is kept there."""

    tool: str
    """Which tool it is of."""
    call_id: str
    """Which call of it: with the tool the key of the artifact, so that the same result always
    becomes the same pointer."""
    value: object
    """Text, or plain JSON values."""
    turn: int
    """Which response of the model made the call, counted from 0 from the head of the
    conversation."""
    is_error: bool = False
    """Whether it is the text of a failure."""


class History:
    """Decides which results are shown as pointers, in each request of a conversation anew.

    It follows from the conversation alone: nothing is kept, so that another process, or the same
    one after a restart, sends the same bytes. Results older than the last turns may take
    `budget_bytes`. Once they take more, all of them become pointers at once, and stay pointers; the
    next ones follow when such an amount has come together again. So the prefix that a provider has
    cached is broken once for each `budget_bytes` of results, and not in each turn.

    Args:
        budget_bytes: What older results may take.
        keep_turns: Results of so many last turns are never touched.

    Raises:
        ValueError: One of them is negative.
        TypeError: One of them is no whole number.
    """

    def __init__(self, budget_bytes: int, *, keep_turns: int = 3) -> None:
        for name, number in (("history_bytes", budget_bytes), ("keep_turns", keep_turns)):
            if not isinstance(number, int) or isinstance(number, bool):
                raise TypeError(f"{name} must be a whole number, got {number!r}")
            if number < 0:
                raise ValueError(f"{name} must be 0 or more, got {number}")
        self._budget_bytes = budget_bytes
        self._keep_turns = keep_turns

    async def shown(
        self, session: Session, results: Sequence[PastResult], turn: int
    ) -> list[Envelope | None]:
        """Return for each result what stands in for it in a request; None where it stays.

        What our own tools replied stays, as does a result under 2,000 bytes, and each of them
        where the store is out.

        Args:
            session: Whose bank keeps them.
            results: Of the conversation, from its head on.
            turn: How many responses of the model there are so far.
        """
        limits = session.mirror.limits
        gone = sorted(self.gone(results, turn, limits.never.union(session.tools)))
        low = replace(limits, inline_bytes=1, per_tool={}, turn_bytes=None)
        # The journal knows of these calls.
        values = await Mirror(session.bank, low, own=session.tools).offload_turn(
            ToolResult(each.value, each.tool, each.call_id, each.is_error, is_noted=True)
            for each in (results[at] for at in gone)
        )
        shown: list[Envelope | None] = [None] * len(results)
        for at, value in zip(gone, values, strict=True):
            shown[at] = value if isinstance(value, Envelope) else None
        return shown

    def gone(
        self, results: Sequence[PastResult], turn: int, never: frozenset[str]
    ) -> Iterator[int]:
        """Yield which have become pointers by now, turn by turn as they grew old.

        Args:
            results: Of the conversation, from its head on.
            turn: How many responses of the model there are so far.
            never: Tools whose results stay.
        """
        old = [at for at, each in enumerate(results) if each.turn < turn - self._keep_turns]
        waiting: list[int] = []
        waiting_bytes = 0
        for _, group in groupby(
            sorted(old, key=lambda at: results[at].turn), key=lambda at: results[at].turn
        ):
            for at in group:
                size_bytes = 0 if results[at].tool in never else _size(results[at].value)
                if size_bytes >= _LEAST_BYTES:
                    waiting.append(at)
                    waiting_bytes += size_bytes
            if waiting_bytes > self._budget_bytes:
                yield from waiting
                waiting, waiting_bytes = [], 0


def _size(value: object) -> int:
    """Return what a result takes; 0 where it is an envelope already, or cannot be kept."""
    try:
        return 0 if _is_envelope(value) else encoded_size(value)
    except UnencodableValueError:
        return 0


def _is_envelope(value: object) -> bool:
    """Return whether a result is an envelope already, as JSON or as its text."""
    if isinstance(value, str):
        if len(value) > _LONGEST_ENVELOPE_CHARS or not value.startswith('{"pointer":'):
            return False
        try:
            value = json.loads(value)
        except ValueError:
            return False
    if not isinstance(value, Mapping):
        return False
    wire = cast("Mapping[str, object]", value)
    return "sizeBytes" in wire and is_pointer(wire.get("pointer"))
