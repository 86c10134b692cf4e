"""What a model is shown of a tool's arguments where some tools are strict."""

from collections.abc import Mapping
from typing import Any

from ..mirror import Mirror


def opened(mirror: Mirror, schema: Mapping[str, Any], *, is_strict: bool) -> dict[str, Any]:
    """Return a tool's schema with its array and object parameters open to pointers.

    Args:
        mirror: Opens schemas.
        schema: Of the arguments, an object; it is not changed.
        is_strict: Whether the host lets a model write nothing but what the schema says. A pointer
            is then shown as any text: some hosts refuse a whole request for one pattern.
    """
    shown = mirror.schema(schema)
    if not is_strict:
        return shown
    given: Mapping[str, Any] = schema.get("properties", {})
    for name, node in shown.get("properties", {}).items():
        if node != given[name] and "anyOf" in node:
            node["anyOf"] = [*node["anyOf"][:-1], {"type": "string", "description": "a pointer"}]
    return shown
