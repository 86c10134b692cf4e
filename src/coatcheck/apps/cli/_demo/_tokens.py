"""Tokens of what a model is sent: o200k, counted and not estimated."""

from collections.abc import Callable, Sequence
from typing import Any

from rs_bpe import bpe

from ....content import dumps, visible
from ....tools import Tool
from ._policy import Message

_LONG_CHARS = 10_000


class TokenCounter:
    """Counts tokens; a long text that comes again is counted once."""

    def __init__(self) -> None:
        # rs_bpe ships no type hints.
        openai: Any = bpe.openai
        self._count: Callable[[str], int] = openai.o200k_base().count
        self._known: dict[str, int] = {}

    def schemas(self, tools: Sequence[Tool]) -> int:
        """Return the tokens of the tools' compact JSON."""
        return sum(
            self._text(
                _json(
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    }
                )
            )
            for tool in tools
        )

    def message(self, message: Message, *, without: str | None = None) -> int:
        """Return the tokens of a message: compact JSON, but its content as the text it is.

        Args:
            message: As it is sent.
            without: An argument that is not counted.
        """
        frame = {key: value for key, value in message.items() if key not in {"content", "calls"}}
        tokens = self._text(_json(frame)) + self._text(str(message.get("content", "")))
        for call in message.get("calls", ()):
            tokens += self._text(_json({"id": call["id"], "name": call["name"], "arguments": {}}))
            for name, value in call["arguments"].items():
                tokens += self._text(_json(name))
                tokens += 0 if name == without else self._text(_json(value))
        return tokens

    def _text(self, text: str) -> int:
        if len(text) < _LONG_CHARS:
            return self._count(visible(text))
        if text not in self._known:
            self._known[text] = self._count(visible(text))
        return self._known[text]


def _json(value: object) -> str:
    return dumps(value).decode("utf-8", "surrogatepass")
