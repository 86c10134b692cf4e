"""A configuration as it may be shown: what may be a secret in it is left out."""

import re
from collections.abc import Iterator

from ._jsonc import Node, parse_jsonc
from ._servers_file import VARIABLE

MASK = '"•••"'

_SEPARATOR = re.compile("[:=]")
_VALUES = frozenset({"env", "headers"})
_ARGS = "args"
_SECRET = re.compile(
    r"key|token|secret|pass|pwd|\bpat\b|auth|credential|bearer|jwt|cookie|header|^-H$|dsn|connection",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\b(?:sk-|gh[pousr]_|github_pat_|xox[abpr]-|glpat-|AKIA|eyJ)[A-Za-z0-9_-]{8}")
"""How tokens of well-known services begin."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]*@|[?&#][^=\s]*=", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]*(/\S*)", re.IGNORECASE)
_LETTER = re.compile(r"-[A-Za-z]")
"""A flag of one letter: ``-p`` is a port to one program, and the password to another."""
_LETTER_WITH_VALUE = re.compile(r"-[apPtukw](?=.*[0-9A-Z])\S{4,}")
_HARMLESS = re.compile(r"[0-9]{1,5}|[./@~].*|[a-z][a-z._-]{0,20}")
"""What a password is not: a port, a path, a package, a plain word."""
_RANDOM = re.compile(r"(?=(?:\D*\d){3})(?=\d*\D)[A-Za-z0-9_-]{16,}")
"""What nobody would write by hand."""


def masked(text: str) -> str:
    """Return the text of servers without what may be a secret.

    That is values of variables and headers, and arguments and addresses that look like holding a
    password. What only names a variable stays.

    >>> masked(
    ...     '{"a": {"command": "x", "args": ["--api-key", "1"], "env": {"B": "2", "C": "${C}"}}}'
    ... )
    '{"a": {"command": "x", "args": ["--api-key", "•••"], "env": {"B": "•••", "C": "${C}"}}}'
    """
    for node in sorted(_secret(parse_jsonc(text)), key=lambda node: -node.start):
        text = text[: node.start] + MASK + text[node.stop :]
    return text


def _secret(node: Node) -> Iterator[Node]:
    for key, member in node.members.items():
        if key in _VALUES:
            yield from (each for each in member.members.values() if not _is_plain(each))
        elif key == _ARGS and isinstance(member.content, list):
            yield from _secret_arguments(member.content)
        elif isinstance(member.content, str):
            if (_SECRET.search(key) or _holds_secret(member.content)) and not _is_plain(member):
                yield member
        else:
            yield from _secret(member)


def _secret_arguments(arguments: list[Node]) -> Iterator[Node]:
    flag = ""
    for node in arguments:
        said = node.content if isinstance(node.content, str) else ""
        is_value = bool(flag) and not said.startswith("-") and _may_be_secret(flag, said)
        alone = _RANDOM.fullmatch(said) or _LETTER_WITH_VALUE.fullmatch(said)
        if (is_value or alone or _holds_secret(said)) and not _is_plain(node):
            yield node
        flag = said if said.startswith("-") and "=" not in said else ""


def _may_be_secret(flag: str, said: str) -> bool:
    """Return whether what stands behind a flag may be a secret."""
    if _SECRET.search(flag):
        return True
    return bool(_LETTER.fullmatch(flag)) and not _HARMLESS.fullmatch(said)


def _holds_secret(said: str) -> bool:
    """Return whether a text names a secret and goes on with it, or is known to hold one."""
    *before, _ = _SEPARATOR.split(said)
    named = any(_SECRET.search(each) for each in before)
    if named or _TOKEN.search(said) or _ADDRESS.search(said):
        return True
    # A part of its path may be all that keeps others out of an address.
    path = _SCHEME.search(said)
    return path is not None and any(_RANDOM.fullmatch(part) for part in path[1].split("/"))


def _is_plain(node: Node) -> bool:
    """Return whether a value only names variables."""
    return isinstance(node.content, str) and not VARIABLE.sub("", node.content).strip()
