"""Where the lists of a JSON value lie: said where a table was asked for and an object is there."""

from collections.abc import Mapping, Sequence
from typing import cast

_LOOKED_AT = 2_000
_DEEPEST = 6
_NAMED = 5
_LONGEST_CHARS = 120


def list_paths(value: object) -> list[tuple[str, int]]:
    """Return JSON Pointers to the longest lists that lie in objects only, and their lengths.

    >>> list_paths({"a": [1, 2], "b": {"c/d": [1]}})
    [('/a', 2), ('/b/c~1d', 1)]
    """
    waiting: list[tuple[str, object, int]] = [("", value, 0)]
    found: list[tuple[str, int]] = []
    for path, each, depth in waiting:  # grows on the way
        if isinstance(each, list):
            found.append((path, len(cast("Sequence[object]", each))))
        elif isinstance(each, dict) and depth < _DEEPEST:
            members = cast("Mapping[str, object]", each).items()
            room = max(0, _LOOKED_AT - len(waiting))
            waiting += [
                (f"{path}/{_token(key)}", below, depth + 1) for key, below in list(members)[:room]
            ]
    short = [each for each in found if len(each[0]) <= _LONGEST_CHARS and each[0].isprintable()]
    return sorted(short, key=lambda each: -each[1])[:_NAMED]


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
