"""What stands behind a pointer, as a tool's JSON schema declares the place for it."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from ..bank import as_text, parsed, structured
from ..content import is_tabular
from ..errors import InvalidArgumentError
from ..records import dataclass
from ._schema import is_verbatim, schema_at, schema_types, schema_words
from ._slots import Argument

_BASE64 = frozenset({"base64", "byte"})
_URL_SAFE = frozenset({"base64url"})
_STRUCTURES: Mapping[type, str] = {list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Inspected:
    """The arguments of a call with what each pointer stands for in its place."""

    arguments: dict[str, object]
    pointers: tuple[str, ...]
    """Those that were resolved, selectors included; none where nothing was."""


def leave_verbatim(argument: Argument, root: Mapping[str, Any]) -> None:
    """Leave the pointers in parameters of a schema that get them as text."""
    argument.slots = [
        slot
        for slot in argument.slots
        if not is_verbatim(schema_at(root, slot.path[:1], root), root)
    ]


def as_schema(
    found: object,
    node: object,
    root: Mapping[str, Any],
    *,
    content_type: str | None = None,
    prefers_structure: bool = False,
) -> object:
    """Return a value that was banked as its text where only text may stand, else parsed.

    Where both may stand it is what was put; with `prefers_structure` the list or object that a
    text holds, if the schema names that type. Of a table its rows are the list, where its content
    type, or how it looks if that is None, tells that it is one.

    Raises:
        InvalidArgumentError: It is binary, and text is asked for.
    """
    types = schema_types(node, root) - {"null"}
    if types == {"string"}:
        return as_text(found)
    if types and "string" not in types:
        return structured(found, content_type) if "array" in types else parsed(found)
    if prefers_structure:
        structure = parsed(found)
        if _STRUCTURES.get(type(structure)) in types:
            return structure
    return found


def as_json(found: object, node: object, root: Mapping[str, Any]) -> object:
    """Return a value that was banked as one that JSON has, for a place of the arguments.

    A frame or an array becomes the list of its rows. Bytes become base64 where the schema asks
    for it, in ``contentEncoding`` or ``format``, or where they are no text; else their text.
    """
    if is_tabular(found):
        return parsed(found)
    if not isinstance(found, bytes):
        return found
    asked = schema_words(node, root, "contentEncoding") | schema_words(node, root, "format")
    if asked & _URL_SAFE:
        return urlsafe_b64encode(found).decode()
    if not asked & _BASE64:
        try:
            return as_text(found)
        except InvalidArgumentError:
            pass
    return b64encode(found).decode()
