"""Which tools of a server of the user's own are called, and with which arguments."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import mcp_types

from ....errors import InvalidArgumentError, shown
from ....records import OWN_TOOLS

_MOST_CALLS = 5
_MOST_LINES = 3
_OF_PATHS = ("path", "dir", "repo", "folder", "root")
"""What is in the name of a parameter that takes a folder."""

Wanted = tuple[str, dict[str, Any]]


def parsed_call(call: str, listed: Sequence[mcp_types.Tool]) -> Wanted:
    """Return a tool and its arguments, of ``TOOL`` or ``TOOL={…}``.

    Raises:
        InvalidArgumentError: It is neither, or there is no such tool.
    """
    name, equals, text = call.partition("=")
    if name not in {tool.name for tool in listed}:
        raise InvalidArgumentError(
            f"The server has no tool {shown(name)}.",
            f"It has: {', '.join(tool.name for tool in listed)}.",
        )
    try:
        arguments: object = json.loads(text) if equals else {}
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise InvalidArgumentError(
            f"What follows {name}= is no JSON object.", f"--call '{name}={{\"argument\": 1}}'"
        )
    return name, cast("dict[str, Any]", arguments)


def harmless_calls(listed: Sequence[mcp_types.Tool], command: Sequence[str]) -> list[Wanted]:
    """Return calls of tools that say that they change nothing, and of which all is known to call.

    Args:
        listed: The tools.
        command: What starts the server: a folder in it is taken where one is asked for.
    """
    calls: list[Wanted] = []
    for tool in listed:
        only_reads = tool.annotations is not None and tool.annotations.read_only_hint
        arguments, missing = _arguments(tool, command)
        if only_reads and not missing and tool.name not in OWN_TOOLS:
            calls.append((tool.name, arguments))
    return calls[:_MOST_CALLS]


def lines_to_try(listed: Sequence[mcp_types.Tool], command: Sequence[str]) -> list[str]:
    """Return commands that call tools which nobody called, what is left to fill in as ``…``."""
    lines: list[tuple[int, str]] = []
    for tool in listed:
        arguments, missing = _arguments(tool, command)
        hints = tool.annotations
        changes = 0 if hints is not None and hints.read_only_hint else 1
        if tool.name not in OWN_TOOLS and not (hints is not None and hints.destructive_hint):
            given = arguments | dict.fromkeys(missing, "…")
            text = f"={json.dumps(given, ensure_ascii=False)}" if given else ""
            call = shlex.quote(f"{tool.name}{text}")
            line = f"coatcheck demo --call {call} -- {shlex.join(command)}"
            lines.append((changes * 100 + len(missing), line))
    return [line for _, line in sorted(lines, key=lambda line: line[0])[:_MOST_LINES]]


def _arguments(
    tool: mcp_types.Tool, command: Sequence[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments that a tool must be given, as far as they are known, and the others."""
    schema: Mapping[str, Any] = tool.input_schema
    required = cast("object", schema.get("required"))
    properties = cast("object", schema.get("properties"))
    names = cast("list[object]", required) if isinstance(required, list) else []
    each: Mapping[str, object] = {}
    if isinstance(properties, dict):
        each = cast("Mapping[str, object]", properties)
    arguments: dict[str, Any] = {}
    missing: list[str] = []
    for name in (name for name in names if isinstance(name, str)):
        found = _values(name, each.get(name), command)
        if found:
            arguments[name] = found[0]
        else:
            missing.append(name)
    return arguments, tuple(missing)


def _values(name: str, parameter: object, command: Sequence[str]) -> list[Any]:
    """Return what a parameter may be given, the likeliest first: by its schema, or the command."""
    if not isinstance(parameter, dict):
        return []
    of_schema = cast("Mapping[str, Any]", parameter)
    values = [of_schema[key] for key in ("default", "const") if key in of_schema]
    for key in ("examples", "enum"):
        several: object = of_schema.get(key)
        values += cast("list[object]", several) if isinstance(several, list) else []
    takes_path = any(part in name.lower() for part in _OF_PATHS)
    if not values and takes_path and of_schema.get("type") == "string":
        return [word for word in _words(command) if _is_folder(word)]
    return values


def _words(command: Sequence[str]) -> list[str]:
    """Return what stands in a command behind the program, of ``--option=VALUE`` the value."""
    return [word.partition("=")[2] if word.startswith("-") else word for word in command[1:]]


def _is_folder(word: str) -> bool:
    try:
        return bool(word) and Path(word).is_dir()
    except (OSError, ValueError):  # it is no path at all
        return False
