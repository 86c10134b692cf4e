"""What becomes of a host's configuration: its stdio servers move behind one proxy, and back.

Only the object that holds the servers is written anew, the rest of the text stays as it is. The
servers go to a file beside it, together with the text that stood there, so that they can be put
back byte for byte. Pure: texts in, texts out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ...errors import InvalidArgumentError
from ._jsonc import Node, edited, parse_jsonc
from ._servers_file import HANDED, KEYS, VARIABLE, is_disabled

SUFFIX = ".coatcheck.json"
"""Of the file that the servers move to."""

_ENTRY = "coatcheck"
# A host connects to each name once: of two files with the same name only one would be there.
_OF_USER = "-user"
_OF_PROJECT = "-local"
_PROJECTS = "projects"
_ABOUT = "Servers behind the proxy. `coatcheck proxy --unwrap FILE` puts them back."


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a configuration, and the files beside it, are to become."""

    text: str
    """Of the configuration."""
    beside: Mapping[Path, str]
    """Files of servers to write, by path."""
    moved: tuple[str, ...]
    """Servers that the proxy starts from now on."""
    stayed: tuple[tuple[str, str], ...]
    """Those that stay where they are, and why."""


@dataclass(frozen=True, slots=True)
class _Place:
    """One object of servers in a configuration."""

    node: Node
    file: Path
    """Where its servers move to."""
    is_of_project: bool = False
    """Whether a file of the user holds it for one project."""


def wrapped(
    text: str,
    file: Path,
    start: Sequence[str],
    name: str | None = None,
    *,
    is_of_user: bool = False,
) -> Change:
    """Return a configuration with one proxy in place of its stdio servers.

    Args:
        text: A configuration that is not wrapped.
        file: Its path, absolute.
        start: What starts the proxy: the program, ``proxy``, and options.
        name: Of the entry of the proxy; None is ``coatcheck``, or ``coatcheck-user`` in a file of
            the user. Within that, the entry of a project ends in ``-local``.
        is_of_user: Whether the configuration is one for all that a user works on.

    Raises:
        InvalidArgumentError: It is no configuration.
    """
    moved: list[str] = []
    stayed: list[tuple[str, str]] = []
    beside: dict[Path, str] = {}
    spans: list[tuple[Node, str]] = []
    for place in _places(text, file):
        stays = {name: _why_it_stays(node.plain) for name, node in place.node.members.items()}
        stayed += [(name, why) for name, why in stays.items() if why]
        names = [name for name, why in stays.items() if not why]
        if not names:
            continue
        moved += names
        new, servers = _proxied(
            text, place, names, start, _entry_name(place, name, is_of_user=is_of_user)
        )
        spans.append((place.node, new))
        record = {
            "about": _ABOUT,
            KEYS[0]: servers,
            "original": text[place.node.start : place.node.stop],
            "written": new,
        }
        beside[place.file] = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    changed = _with(text, spans)
    return Change(text=changed, beside=beside, moved=tuple(moved), stayed=tuple(stayed))


def unwrapped(text: str, file: Path, read: Callable[[Path], str]) -> str:
    """Return a configuration with its own servers again, where a proxy stands.

    It is what it was before, byte for byte, but for what was changed since.

    Args:
        text: A configuration, wrapped or not.
        file: Its path, absolute.
        read: Returns the text of a file of servers.

    Raises:
        InvalidArgumentError: It is no configuration, or a file of servers is not as it was written.
    """
    spans: list[tuple[Node, str]] = []
    for place in _places(text, file):
        for name, node in place.node.members.items():
            beside = servers_file(node.plain)
            if beside is not None:
                original, written = _recorded(beside, read(beside))
                is_same = text[place.node.start : place.node.stop] == written
                spans.append(
                    (
                        place.node,
                        original if is_same else _put_back(text, place.node, name, original),
                    )
                )
                break
    return _with(text, spans)


def servers_file(entry: object) -> Path | None:
    """Return the file of servers that an entry starts a proxy with, None where it does not."""
    if not isinstance(entry, dict):
        return None
    args = cast("dict[str, object]", entry).get("args")
    if not isinstance(args, list):
        return None
    each = cast("list[object]", args)
    if "proxy" not in each or "--config" not in each[:-1]:
        return None
    named = each[each.index("--config") + 1]
    return Path(named) if isinstance(named, str) and named.endswith(SUFFIX) else None


def is_wrapped(text: str, file: Path) -> bool:
    """Return whether a proxy of ours stands in a configuration.

    Raises:
        InvalidArgumentError: It is no configuration.
    """
    return bool(servers_files(text, file))


def servers_files(text: str, file: Path) -> list[Path]:
    """Return the files of servers that a configuration names."""
    nodes = [node for place in _places(text, file) for node in place.node.members.values()]
    each = [servers_file(node.plain) for node in nodes]
    return [beside for beside in each if beside is not None]


def object_spans(text: str, file: Path) -> list[str]:
    """Return the text of each object of servers."""
    return [text[place.node.start : place.node.stop] for place in _places(text, file)]


def _places(text: str, file: Path) -> list[_Place]:
    """Return the objects of servers: of all, and in Claude Code's own file those of projects."""
    root = parse_jsonc(text)
    nodes = [root.members[key] for key in KEYS if key in root.members]
    of_all = len(nodes)
    if _PROJECTS in root.members:
        projects = root.members[_PROJECTS].members.values()
        nodes += [each.members[KEYS[0]] for each in projects if KEYS[0] in each.members]
    wrong = not nodes or any(not isinstance(node.content, dict) for node in nodes)
    if wrong:
        raise InvalidArgumentError(
            f"There is no object {KEYS[0]!r} or {KEYS[1]!r} in it.",
            "Name the file in which your host keeps its MCP servers.",
        )
    files = [
        file.with_name(f"{file.stem}{'' if number == 1 else f'-{number}'}{SUFFIX}")
        for number in range(1, len(nodes) + 1)
    ]
    each = enumerate(zip(nodes, files, strict=True))
    return [_Place(node, beside, at >= of_all) for at, (node, beside) in each]


def _entry_name(place: _Place, name: str | None, *, is_of_user: bool) -> str:
    if place.is_of_project:
        return (name or _ENTRY) + _OF_PROJECT
    return name or (_ENTRY + _OF_USER if is_of_user else _ENTRY)


def _why_it_stays(entry: object) -> str:
    """Return why a server stays in the host's own hands, nothing where it moves."""
    if not isinstance(entry, dict):
        return "it is no object"
    of_host = cast("dict[str, object]", entry)
    if is_disabled(of_host):
        return "it is disabled"
    if not isinstance(of_host.get("command"), str):
        return (
            "it is remote, and your host signs in there itself"
            if "url" in of_host
            else ("it has neither a command nor a url")
        )
    if of_host.get("type", "stdio") != "stdio":
        return "it does not speak over stdio"
    return ""


def _proxied(
    text: str, place: _Place, names: Sequence[str], start: Sequence[str], name: str
) -> tuple[str, dict[str, object]]:
    """Return the text of an object of servers with the proxy in it, and what moves behind it."""
    members = place.node.members
    handed: dict[str, str] = {}
    servers = {each: _handed_over(members[each].plain, handed) for each in names}
    entry: dict[str, object] = {}
    if any("type" in members[each].members for each in names):
        entry["type"] = "stdio"
    entry |= {"command": start[0], "args": [*start[1:], "--config", str(place.file)]}
    if handed:
        entry["env"] = {variable: asked for asked, variable in handed.items()}
    kept = [each for each in members if each not in names]
    own = next(
        each
        for each in (name, *(f"{name}-{number}" for number in range(2, len(kept) + 3)))
        if each not in kept
    )
    changes = dict.fromkeys(names, "")
    own_key = json.dumps(own, ensure_ascii=False)
    changes[names[0]] = f"{own_key}: {_indented(text, place.node, entry)}"
    return edited(text, place.node, changes), servers


def _handed_over(value: object, handed: dict[str, str]) -> object:
    """Return a server with variables for what only a host can fill in, which `handed` collects.

    A host that fills in nothing hands over the text as it is, which is what the server would
    have been given without a proxy.
    """
    if isinstance(value, str):
        return VARIABLE.sub(
            lambda match: f"${{{handed.setdefault(match[0], f'{HANDED}{len(handed) + 1}')}}}", value
        )
    if isinstance(value, list):
        return [_handed_over(each, handed) for each in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {key: _handed_over(each, handed) for key, each in members.items()}
    return value


def _put_back(text: str, node: Node, own: str, original: str) -> str:
    """Return an object of servers that was changed since, the moved ones where the proxy stood."""
    back = [
        original[each.key_start : each.stop]
        for name, each in parse_jsonc(original).members.items()
        if name not in node.members and not _why_it_stays(each.plain)
    ]
    between = f",{_line_end(text)}{_indents(text, node)[1]}" if _has_lines(text, node) else ", "
    return edited(text, node, {own: between.join(back)})


def _recorded(file: Path, text: str) -> tuple[str, str]:
    found = parse_jsonc(text).members
    original, written = (
        found[key].content if key in found else None for key in ("original", "written")
    )
    if not isinstance(original, str) or not isinstance(written, str):
        raise InvalidArgumentError(
            f"{file} does not tell what stood there before.", "Put the servers back by hand."
        )
    return original, written


def _indented(text: str, node: Node, value: object) -> str:
    """Return a value as a member of an object, on lines or on one as the others are."""
    if not _has_lines(text, node):
        return json.dumps(value, ensure_ascii=False)
    outer, inner = _indents(text, node)
    step = inner[len(outer) :] or "  "
    lines = json.dumps(value, ensure_ascii=False, indent=step).split("\n")
    return _line_end(text).join([lines[0], *(inner + line for line in lines[1:])])


def _has_lines(text: str, node: Node) -> bool:
    return "\n" in text[node.start : node.stop]


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indents(text: str, node: Node) -> tuple[str, str]:
    """Return the white space before an object's line and before its members'."""
    outer = _indent(text, node.key_start)
    first = min((member.key_start for member in node.members.values()), default=None)
    inner = "" if first is None or "\n" not in text[node.start : first] else _indent(text, first)
    return outer, inner if len(inner) > len(outer) else outer + "  "


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _with(text: str, spans: Sequence[tuple[Node, str]]) -> str:
    """Return a text with other ones where nodes stood."""
    for node, new in sorted(spans, key=lambda span: -span[0].start):
        text = text[: node.start] + new + text[node.stop :]
    return text
