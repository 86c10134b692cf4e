"""JSON as people keep it in settings, with comments and trailing commas, and where each part lies.

Hosts tolerate both in their configurations, and whoever changes one has to leave the rest of it
as it is: so each value is told with its place in the text.
"""

import json
import re
from dataclasses import dataclass
from typing import cast

from ...errors import InvalidArgumentError

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r'["\-0-9tfn]')
_SCALARS = json.JSONDecoder()
_DEEPEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value of a text, from `start` to `stop`, in characters."""

    start: int
    stop: int
    key_start: int
    """Where its key begins, in an object; elsewhere where it does."""
    content: "dict[str, Node] | list[Node] | str | float | bool | None"

    @property
    def members(self) -> "dict[str, Node]":
        """What an object holds, by key; nothing of any other value."""
        return self.content if isinstance(self.content, dict) else {}

    @property
    def plain(self) -> object:
        """The value itself."""
        if isinstance(self.content, dict):
            return {key: node.plain for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.plain for node in self.content]
        return self.content


def parse_jsonc(text: str) -> Node:
    r"""Return the value of a text of JSON, comments and trailing commas tolerated.

    Raises:
        InvalidArgumentError: It is no JSON, a key stands twice in one object, or it is nested
            more than 100 deep.

    >>> node = parse_jsonc('{"a": [1, 2,], // one\n}')
    >>> node.plain, node.members["a"].start
    ({'a': [1, 2]}, 6)
    """
    reader = _Reader(text)
    node = reader.value(reader.blank(0), 0)
    if reader.blank(node.stop) != len(text):
        raise reader.error("the end", reader.blank(node.stop))
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, start: int) -> int:
        """Return where what is no comment and no white space goes on."""
        match = _BLANK.match(self.text, start)
        return start if match is None else match.end()

    def value(self, start: int, depth: int, key_start: int | None = None) -> Node:
        if depth > _DEEPEST:
            raise InvalidArgumentError(f"It is nested more than {_DEEPEST} deep.")
        first = self.text[start : start + 1]
        content: dict[str, Node] | list[Node] | str | float | bool | None
        if first == "{":
            content, stop = self._object(start, depth)
        elif first == "[":
            content, stop = self._array(start, depth)
        elif _SCALAR.match(first):
            try:
                content, stop = cast(
                    "tuple[str | float | bool | None, int]", _SCALARS.raw_decode(self.text, start)
                )
            except ValueError as error:
                raise self.error("a whole value", start) from error
        else:
            raise self.error("a value", start)
        at = start if key_start is None else key_start
        return Node(start=start, stop=stop, key_start=at, content=content)

    def _object(self, start: int, depth: int) -> tuple[dict[str, Node], int]:
        members: dict[str, Node] = {}
        at = self.blank(start + 1)
        while not self.text.startswith("}", at):
            if not self.text.startswith('"', at):
                raise self.error('a key in quotes or "}"', at)
            key = self.value(at, depth)
            colon = self.blank(key.stop)
            if not self.text.startswith(":", colon):
                raise self.error('":"', colon)
            name = str(key.content)
            if name in members:
                raise self.error(f"each key once, not {name!r} again", at)
            members[name] = self.value(self.blank(colon + 1), depth + 1, at)
            at = self._next(members[name].stop, "}")
        return members, at + 1

    def _array(self, start: int, depth: int) -> tuple[list[Node], int]:
        items: list[Node] = []
        at = self.blank(start + 1)
        while not self.text.startswith("]", at):
            items.append(self.value(at, depth + 1))
            at = self._next(items[-1].stop, "]")
        return items, at + 1

    def _next(self, stop: int, end: str) -> int:
        """Return where the next part begins, or where the end stands."""
        at = self.blank(stop)
        if self.text.startswith(",", at):
            return self.blank(at + 1)
        if not self.text.startswith(end, at):
            raise self.error(f'"," or "{end}"', at)
        return at

    def error(self, expected: str, at: int) -> InvalidArgumentError:
        line_number = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        where = f"line {line_number}, column {column}"
        return InvalidArgumentError(f"No JSON at {where}: expected {expected}.", "Mend it first.")
