"""What upstreams say of their tools: how it is listed, and what resolved arguments are held to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from jsonschema_rs import RegexOptions, ValidationError, Validator, validator_for

from ...errors import InvalidArgumentError, shown
from ...mirror import Mirror
from ._schema_cost import SchemaCost

META_OUTPUT = "coatcheck/outputSchema"
"""Key in the `_meta` of a listed tool, under which its own `outputSchema` is kept."""

_PLACE_PARTS = 8
_WHY_CHARS = 200
_NAMING = {
    "additionalProperties": "it has properties that it may not have",
    "unevaluatedProperties": "it has properties that it may not have",
    "propertyNames": "the name of a property is not allowed",
    "falseSchema": "nothing may stand there",
}
"""Own words where those of the validator quote names of properties, which are payload."""


@dataclass(slots=True)
class _Known:
    schema: Mapping[str, Any]
    validator: Validator | None = None
    cost: SchemaCost | None = None
    is_compiled: bool = False


class ToolSchemas:
    """Input schemas by upstream and tool, as the upstream listed them last.

    Args:
        mirror: Lets pointers into a schema.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._known: dict[tuple[str, str], _Known] = {}

    def listed(
        self, upstream: str, tool: Mapping[str, object], *, keeps_output: bool
    ) -> dict[str, object]:
        """Return a tool as it is listed, and remember what its arguments are.

        Args:
            upstream: The name of the upstream.
            tool: Its definition; it is not changed.
            keeps_output: Whether no result of it is ever replaced, so that its schema holds.
        """
        definition = dict(tool)
        schema = tool.get("inputSchema")
        if isinstance(schema, Mapping):
            known = _Known(cast("Mapping[str, Any]", schema))
            self._known[upstream, str(tool.get("name"))] = known
            definition["inputSchema"] = self._mirror.schema(known.schema, in_defs=True)
        if "outputSchema" in tool and not keeps_output:
            del definition["outputSchema"]
            meta = tool.get("_meta")
            kept: Mapping[str, object] = (
                cast("Mapping[str, object]", meta) if isinstance(meta, Mapping) else {}
            )
            definition["_meta"] = {**kept, META_OUTPUT: tool["outputSchema"]}
        return definition

    def of(self, upstream: str, tool: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool; None where none was listed."""
        known = self._known.get((upstream, tool))
        return None if known is None else known.schema

    def check(self, upstream: str, tool: str, arguments: Mapping[str, object]) -> None:
        """Pass where arguments fit the tool's own schema, or that is none to be judged by.

        Raises:
            InvalidArgumentError: They do not; the message quotes nothing of a payload.
        """
        error = self._error(upstream, tool, arguments)
        if error is not None:
            raise InvalidArgumentError(
                f"{_place(error)} does not fit its type: {_why(error)}.",
                "Pass a value, or a pointer to one, of the declared type; # and a selector take"
                " a part of it.",
            )

    def fits(self, upstream: str, tool: str, arguments: Mapping[str, object]) -> bool:
        """Return whether `check` passes."""
        return self._error(upstream, tool, arguments) is None

    def _error(
        self, upstream: str, tool: str, arguments: Mapping[str, object]
    ) -> ValidationError | None:
        known = self._known.get((upstream, tool))
        if known is None:
            return None
        if not known.is_compiled:
            (known.validator, known.cost), known.is_compiled = _compiled(known.schema), True
        if known.validator is None or known.cost is None or not known.cost.is_bearable(arguments):
            return None
        return next(known.validator.iter_errors(dict(arguments)), None)


def _compiled(schema: Mapping[str, Any]) -> tuple[Validator | None, SchemaCost | None]:
    """Return what validates by a schema, and at what cost; None where it is none, or leads away.

    Nor where a pattern in it takes an engine that may search for ever.
    """
    linear = RegexOptions()
    try:
        validator = validator_for(
            dict(schema), offline=True, mask="the value", pattern_options=linear
        )
        return validator, SchemaCost(schema)
    except Exception:  # noqa: BLE001 - a schema is the upstream's: whatever is wrong with it, is its
        return None, None


def _place(error: ValidationError) -> str:
    path = error.instance_path
    if not path:
        return "what the arguments hold"
    inner = "".join(f"[{shown(part)}]" for part in path[1:_PLACE_PARTS])
    more = "…" if len(path) > _PLACE_PARTS else ""
    return f"argument {shown(path[0])}{inner}{more}"


def _why(error: ValidationError) -> str:
    words = _NAMING.get(error.kind.name) or error.message
    return words if len(words) <= _WHY_CHARS else f"{words[:_WHY_CHARS]}…"
