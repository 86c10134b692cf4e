"""What a scripted model says to a framework, and what one run of it showed."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

_POINTER = re.compile(r"art:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

How = Literal["async", "sync", "stream"]
"""How a framework is run: awaited, from code without an event loop, or as a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One tool call of a scripted model.

    Args:
        name: Of the tool.
        arguments: As the model writes them.
        id: What the framework calls this call by.
    """

    name: str
    arguments: Mapping[str, object]
    id: str


Said = str | Sequence[ModelCall]
"""What a model says in one turn: its final answer, or calls that run side by side."""

Turn = Said | Callable[[Mapping[str, str]], Said]
"""A turn, or what makes one of the results that the model has read, by the id of their call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one run showed."""

    requests: Sequence[str]
    """All text of each request to the model: system text, then the tools' schemas as JSON, then
    the messages, in which the user's prompt comes first."""
    results: Mapping[str, str]
    """The text of each tool result that the model read, by the id of its call."""
    history: str
    """The conversation as the framework keeps it, with arguments and results."""
    output: str
    """The final answer."""
    images: Sequence[bytes] = ()
    """Those that the model was sent."""


@dataclass(slots=True)
class ScriptedModel:
    """What the fake model of a framework asks for its replies.

    Args:
        script: The turns, in order.

    >>> model = ScriptedModel([[ModelCall(name="rows", arguments={"n": 2}, id="c1")], "done"])
    >>> [call.name for call in model.reply("a request", {})]
    ['rows']
    >>> model.reply("a second request", {"c1": "[1, 2]"}), model.results
    ('done', {'c1': '[1, 2]'})
    """

    script: Sequence[Turn]
    requests: list[str] = field(default_factory=list[str])
    results: dict[str, str] = field(default_factory=dict[str, str])

    def reply(self, request: str, results: Mapping[str, str]) -> Said:
        """Return what the model says to a request.

        Args:
            request: All its text, as in `Seen.requests`.
            results: The tool results among its messages, by the id of their call.

        Raises:
            AssertionError: The script is at its end.
        """
        assert len(self.requests) < len(self.script), "the script is at its end"
        turn = self.script[len(self.requests)]
        self.requests.append(request)
        self.results.update(results)
        return turn(self.results) if callable(turn) else turn


def pointer_in(result: str) -> str:
    """Return the one pointer that a result shows, as a model takes it from there.

    >>> pointer_in('{"pointer":"art:00000000-0000-4000-8000-000000000005","preview":""}')
    'art:00000000-0000-4000-8000-000000000005'
    """
    found = set(_POINTER.findall(result))
    assert len(found) == 1, f"not one pointer but {len(found)} in {result[:500]!r}"
    return str(found.pop())
