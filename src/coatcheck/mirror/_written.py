"""The `repr` of a value that has no encoding, within a bound: the last resort."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import cast

from ..records import dataclass

_MOST_PARTS = 4_000_000
_HEAD_CHARS = 20_000

_BRACKETS: Mapping[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stands between values."""

    text: str


def written(value: object, limit_chars: int) -> tuple[str, bool]:
    """Return `repr(value)` up to `limit_chars`, and whether that is all of it.

    Of Python's own containers, none is nested too deep, and one that is reached on many ways is
    written on each of them, as `repr` does: of what would take over four million parts, only a
    head. What any other class shows is its own; where that fails, that stands in its place.

    >>> written([1, (2,), {"a": set()}], 1_000), written([1, 2], 3)
    (("[1, (2,), {'a': set()}]", True), ('[1,', False))
    """
    if _count_parts(value) > _MOST_PARTS:
        limit_chars = min(limit_chars, _HEAD_CHARS)
    else:
        try:
            whole = repr(value)
        except (Exception, SystemExit):  # noqa: BLE001 - a tool's own class raises anything
            whole = None  # it nests too deep, or a part of it fails: then one by one
        if whole is not None:
            return whole[:limit_chars], len(whole) <= limit_chars
    pieces: list[str] = []
    chars = 0
    for piece in _pieces(value):
        pieces.append(piece)
        chars += len(piece)
        if chars > limit_chars:
            return "".join(pieces)[:limit_chars], False
    return "".join(pieces), True


def _count_parts(value: object) -> int:
    """Return how many values are written of one, each container being counted once."""
    counts: dict[int, int] = {}
    waiting = [value]
    while waiting:
        container = waiting[-1]
        key = id(container)
        if not _is_container(container) or counts.get(key):
            waiting.pop()
            continue
        inner = [part for part in _values(container) if _is_container(part)]
        if key not in counts:
            counts[key] = 0  # until it is known, and where it stands in itself
            waiting.extend(part for part in inner if id(part) not in counts)
            continue
        waiting.pop()
        counts[key] = 1 + _size(container) + sum(counts[id(part)] for part in inner)
    return counts.get(id(value), 1)


def _pieces(value: object) -> Iterator[str]:
    # Each container that is open, by what of it is still to come.
    waiting = [(0, iter((value,)))]
    opened: set[int] = set()
    while waiting:
        within, parts = waiting[-1]
        for part in parts:
            if isinstance(part, _Mark):
                yield part.text
            elif not _is_container(part):
                yield _leaf(part)
            elif id(part) in opened:
                opening, closing = _BRACKETS[type(part)]
                yield f"{opening}...{closing}"
            else:
                opened.add(id(part))
                waiting.append((id(part), _parts(part)))
                break
        else:
            opened.discard(within)
            waiting.pop()


def _is_container(value: object) -> bool:
    return type(value) in _BRACKETS and bool(value)


def _values(container: object) -> Iterator[object]:
    items = cast("Collection[object]", container)
    if isinstance(container, dict):
        return chain(items, cast("dict[object, object]", container).values())
    return iter(items)


def _size(container: object) -> int:
    return len(cast("Collection[object]", container))


def _parts(container: object) -> Iterator[object]:
    """Yield what a container that is not empty is written with: values, and marks between."""
    opening, closing = _BRACKETS[type(container)]
    yield _Mark(opening)
    separator = _Mark(", ")
    if isinstance(container, dict):
        for number, (key, value) in enumerate(cast("dict[object, object]", container).items()):
            if number:
                yield separator
            yield key
            yield _Mark(": ")
            yield value
    else:
        items = cast("list[object]", container)
        for number, item in enumerate(items):
            if number:
                yield separator
            yield item
        if isinstance(container, tuple) and len(items) == 1:
            yield _Mark(",")
    yield _Mark(closing)


def _leaf(value: object) -> str:
    try:
        return repr(value)
    except (Exception, SystemExit) as failure:  # noqa: BLE001 - a tool's own class raises anything
        return f"<{type(value).__name__}, whose repr raised {type(failure).__name__}>"
