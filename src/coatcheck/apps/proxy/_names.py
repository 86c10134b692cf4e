"""Names of tools and prompts behind several servers: ``server_tool``. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b

LONGEST_NAME = 64
"""What models' providers take."""

_LONGEST_PREFIX = 40
_ALLOWED = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")


def prefixes_of(servers: Sequence[str]) -> dict[str, str]:
    """Return the prefix of each server: its name as far as it may stand in one of a tool.

    Servers whose names differ only in what may not stand there get a hash.

    >>> prefixes_of(["files", "my files", "my.files"])
    {'files': 'files', 'my files': 'my_files_0743', 'my.files': 'my_files_8b78'}
    """
    cleaned = {server: _cleaned(server)[:_LONGEST_PREFIX] for server in servers}
    shared = list(cleaned.values())
    return {
        server: prefix if shared.count(prefix) == 1 else f"{prefix}_{_hash(server, 2)}"
        for server, prefix in cleaned.items()
    }


def exposed_name(prefix: str, name: str, prefixes: Iterable[str]) -> str:
    """Return the name that a host sees for a tool of the server with this prefix.

    It depends on nothing but the names of servers and tool, so it is the same whatever servers
    are there, and in whatever order they came. What is too long, holds other characters, or
    could be read as a tool of another server, ends in a hash.

    >>> exposed_name("files", "read", ["files", "git"])
    'files_read'
    >>> exposed_name("a", "b_c", ["a", "a_b"])
    'a_b_c_a8cc35f8'
    """
    plain = f"{prefix}_{name}"
    if _ALLOWED.fullmatch(plain) and not any(
        len(other) > len(prefix) and plain.startswith(f"{other}_") for other in prefixes
    ):
        return plain
    return _hashed(prefix, name)


def expose(
    names: Mapping[str, Iterable[str]], taken: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return the server and own name behind each name that a host sees.

    Args:
        names: Of each prefix, the server's own names.
        taken: Names that are not to be given.
    """
    exposed: dict[str, tuple[str, str]] = {}
    for prefix, own in names.items():
        for name in own:
            shown, again = exposed_name(prefix, name, names), 0
            # A server may choose a name for what it hashes to.
            while shown in taken or exposed.get(shown, (prefix, name)) != (prefix, name):
                again += 1
                shown = _hashed(prefix, name, again)
            exposed[shown] = (prefix, name)
    return exposed


def _hashed(prefix: str, name: str, again: int = 0) -> str:
    end = "_" + _hash("\0".join((prefix, name, str(again))), 4)
    return _cleaned(f"{prefix}_{name}")[: LONGEST_NAME - len(end)] + end


def _cleaned(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name) or "_"


def _hash(text: str, digest_bytes: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=digest_bytes).hexdigest()
