"""Keys that a query asks for and a value has nowhere: they are misspelt, most likely."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import cast

from ._json_pointer import shown_keys

_MOST_VALUES = 20_000
"""As many are looked through. Rows are alike, so that those of a large table are told by fewer."""
_MOST_COMPARED = 300


def misspelt(names: Collection[str], value: object) -> str | None:
    """Return a sentence that says which of the names are no key of any object in a value.

    Returns:
        None where there is no such name.

    >>> misspelt(["id", "stxtus"], [{"id": 1, "status": "paid"}])
    "It has no key 'stxtus', but 'status'."
    """
    keys: dict[str, None] = {}
    looked, left = 0, set(names)
    waiting = deque([value])
    while left and waiting and looked < _MOST_VALUES:
        node = waiting.popleft()
        looked += 1
        below: Iterable[object] = ()
        if isinstance(node, dict):
            members = cast("Mapping[str, object]", node)
            left -= members.keys()
            keys |= dict.fromkeys(members)
            below = members.values()
        elif isinstance(node, list):
            below = cast("list[object]", node)
        waiting.extend(islice(below, _MOST_VALUES - looked - len(waiting)))
    if not left:
        return None
    from difflib import get_close_matches

    missing = [name for name in dict.fromkeys(names) if name in left]
    which = f"{'key' if len(missing) == 1 else 'keys'} {shown_keys(missing)}"
    start = "It has no" if looked < _MOST_VALUES else f"Its first {looked:,} values have no"
    known = list(islice(keys, _MOST_COMPARED))
    close = [key for name in missing for key in get_close_matches(name, known)]
    if not keys:
        return f"{start} {which}: no object is in it."
    return f"{start} {which}, but {shown_keys(list(dict.fromkeys(close)) or list(keys))}."
