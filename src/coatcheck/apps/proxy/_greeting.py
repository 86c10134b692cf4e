"""How the proxy introduces itself: as its servers would, together. Pure."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import cast

from ._eras import MODERN_VERSIONS, SERVER_KEY, Opening, added_for_modern
from ._messages import Json
from ._upstream import Facts

_FLAGGED = ("tools", "resources", "prompts")
_PLAIN = ("completions", "logging")
_OPEN = ("experimental", "extensions")
_TASKS = "tasks"
"""Of the handshake era alone."""


def greeting(opening: Opening, servers: Mapping[str, Facts], instructions: str) -> Json:
    """Return the result of `initialize`, or of `server/discover` in the modern era.

    Args:
        opening: How the client introduced itself.
        servers: Those that are there, by name.
        instructions: What the proxy adds to theirs.
    """
    facts = list(servers.values())
    alone = facts[0] if len(facts) == 1 else None
    told = _instructions(servers, instructions)
    server = (alone.server if alone is not None else None) or {
        "name": "coatcheck",
        "version": version("coatcheck"),
    }
    common: Json = {"capabilities": _capabilities(facts, opening)}
    if told:
        common["instructions"] = told
    if opening.era == "modern":
        return {
            **added_for_modern("server/discover"),
            "supportedVersions": list(MODERN_VERSIONS),
            **common,
            "_meta": {SERVER_KEY: server},
        }
    same = alone is not None and alone.era == "handshake"
    chosen = cast("Facts", alone).version if same else opening.version
    return {"protocolVersion": chosen, **common, "serverInfo": server}


def _capabilities(facts: Sequence[Facts], opening: Opening) -> Json:
    """Return what all servers can, together; tools and resources the proxy has itself."""
    merged: Json = {"tools": {"listChanged": True}, "resources": {}}
    for each in facts:
        for name, value in each.capabilities.items():
            if name in _FLAGGED:
                told = {key: flag for key, flag in _object(value).items() if flag}
                merged[name] = {**_object(merged.get(name)), **told}
            elif name in _PLAIN or name in _OPEN:
                merged[name] = {**_object(merged.get(name)), **_object(value)}
            elif name == _TASKS and each.era == opening.era:
                merged[name] = _together(_object(merged.get(name)), _object(value))
            elif len(facts) == 1 and each.era == opening.era:
                merged[name] = value
    return merged


def _together(one: Json, other: Json) -> Json:
    """Return what two servers can, each level of it."""
    both = {**one, **other}
    for name in one.keys() & other.keys():
        if isinstance(one[name], dict) and isinstance(other[name], dict):
            both[name] = _together(_object(one[name]), _object(other[name]))
    return both


def _instructions(servers: Mapping[str, Facts], own: str) -> str:
    said = {name: facts.instructions for name, facts in servers.items() if facts.instructions}
    if len(servers) == 1:
        parts = [text for text in said.values() if text]
    else:
        parts = [f"{name}: {text}" for name, text in said.items()]
    return "\n\n".join([*parts, *([own] if own else [])])


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
