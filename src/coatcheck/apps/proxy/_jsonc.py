"""JSON as people keep it in settings, with comments and trailing commas, and where each part lies.

Hosts tolerate both in their configurations, and whoever changes one has to leave the rest of it
as it is: so each value is told with its place in the text.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ...errors import InvalidArgumentError

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\n]*?\*/)*(?://[^\r\n]*)?")
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


def edited(text: str, node: Node, changes: Mapping[str, str]) -> str:
    r"""Return the text of an object with other members, all that stands between them as it is.

    Args:
        text: What was parsed.
        node: An object in it.
        changes: By key the text that takes a member's place. A member of which nothing is left
            takes its comma, and the comment behind it on its line, along.

    >>> text = '{"a": 1, // one\n "b": 2 // two\n}'
    >>> print(edited(text, parse_jsonc(text), {"b": ""}))
    {"a": 1 // one
    }
    """
    end = node.stop - 1
    starts = [*(member.key_start for member in node.members.values()), end]
    done, gap = "{", text[node.start + 1 : starts[0]]
    for (key, member), following in zip(node.members.items(), starts[1:], strict=True):
        new = changes.get(key, text[member.key_start : member.stop])
        behind = text[member.stop : following]
        if new:
            done, gap = done + gap + new, behind
        elif following != end:
            gap += _without_own(behind).lstrip()
        else:
            gap = _ended(gap, behind)
    return f"{done}{gap}}}"


def _comma(gap: str) -> int | None:
    """Return where the comma is in what stands behind a member."""
    match = _BLANK.match(gap)
    at = 0 if match is None else match.end()
    return at if gap.startswith(",", at) else None


def _without_own(behind: str) -> str:
    """Return what stands behind a member, but for what goes with it."""
    comma = _comma(behind)
    at = 0 if comma is None else comma + 1
    own = _REST_OF_LINE.match(behind, at)
    rest = behind[at if own is None else own.end() :]
    return rest if rest.startswith(("\n", "\r\n")) else behind[at:]


def _ended(gap: str, behind: str) -> str:
    """Return what stands behind a member that becomes the last."""
    comma = _comma(gap)
    if comma is not None and _comma(behind) is None:
        gap = gap[:comma] + gap[comma + 1 :]
    rest = _without_own(behind)
    return gap.rstrip() + rest if rest.startswith(("\n", "\r\n")) else gap + rest


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
