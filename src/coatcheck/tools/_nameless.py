"""Callers whom nothing tells apart share a scope: there a pointer alone opens what it names."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ..content import loads
from ..errors import InvalidArgumentError, UnknownPointerError
from ..records import is_id, is_pointer, names_pointer
from ._failure import Failure

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_unnamed(asked: Mapping[str, object]) -> None:
    """Refuse names in the arguments of a read tool: callers would share them.

    Raises:
        UnknownPointerError: The artifact is asked for by a name.
        InvalidArgumentError: An answer is to have one.
    """
    text = asked.get("artifactId")
    if isinstance(text, str) and not (is_pointer(text) or names_pointer(text) or is_id(text)):
        raise UnknownPointerError(text)
    if asked.get("saveAs") is not None:
        raise InvalidArgumentError(
            "saveAs is not taken here: callers without identity have no names.",
            "Leave saveAs out; a large answer has a pointer of its own.",
        )


def without_neighbours(reply: str, asked: Mapping[str, object]) -> str:
    """Return a failure of a read tool whose hint names no artifact but those asked for.

    Args:
        reply: The failure, as the tool replied it.
        asked: The arguments of the call.

    >>> there = "art:00000000-0000-4000-8000-000000000005"
    >>> failure = Failure("invalid-query", "There is no table.", f"Ask data. Nearest: {there}.")
    >>> without_neighbours(str(failure), {"query": "SELECT 1 FROM orders"})
    '{"error":"invalid-query","message":"There is no table.","hint":"Ask data."}'
    """
    failure = Failure(**cast("dict[str, str]", loads(reply.encode())))
    if failure.error == UnknownPointerError.code:
        return str(replace(failure, hint=UnknownPointerError("").hint))
    said = [text for text in asked.values() if isinstance(text, str)]
    for found in _ID.finditer(failure.hint):
        if not any(found[0] in text for text in said):
            head, end, _ = failure.hint[: found.start()].rpartition(". ")
            return str(replace(failure, hint=f"{head}{end}".rstrip()))
    return reply
