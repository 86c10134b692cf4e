"""What other scopes of a store hold: for whoever has the store itself, never for a model."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ...bank import BlockingBank, portal, store_at
from ...bank.collection import scopes
from ...errors import CoatcheckError
from .._printable import one_line

_MOST_SCOPES = 1_000
"""Looked at: a store may have one for each chat."""
_MOST_ARTIFACTS = 1_000
"""Counted in one scope."""
_MOST_NAMED = 5


def told_of_others(bank: BlockingBank, address: str, scope: str) -> str:
    """Return how much other scopes hold, and how they are asked for; nothing where none does.

    Args:
        bank: On the store.
        address: Of the store.
        scope: The one that is left out.
    """
    counts: dict[str, int] = {}
    for name, other in _others(bank, address, scope):
        count = sum(1 for _ in islice(other.list(), _MOST_ARTIFACTS))
        counts |= {name: count} if count else {}
    if not counts:
        return ""
    total = sum(counts.values())
    most = sorted(counts, key=lambda name: -counts[name])[:_MOST_NAMED]
    named = ", ".join(f"{_option(name)} ({counts[name]:,})" for name in most)
    more = f", and {len(counts) - len(most):,} more" if len(counts) > len(most) else ""
    over = "at least " if _MOST_ARTIFACTS in counts.values() else ""
    artifacts = f"{over}{total:,} artifact{'s' * (total != 1)}"
    return f"{artifacts} in {len(counts):,} other scope{'s' * (len(counts) != 1)}: {named}{more}"


def told_of_names(address: str, scope: str) -> str:
    """Return how other scopes are asked for; nothing where there are none.

    Nothing is looked up in them: what one of them holds gets the answer of what never was.

    Args:
        address: Of the store.
        scope: The one that is left out.
    """
    names = [name for name in portal().run(_names(address)) if name != scope]
    if not names:
        return ""
    more = f", and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"Other scopes: {', '.join(map(_option, names[:_MOST_NAMED]))}{more}."


def _others(bank: BlockingBank, address: str, scope: str) -> Iterator[tuple[str, BlockingBank]]:
    """Yield other scopes. One that is damaged hides no other, and nothing here hides an answer."""
    for name in portal().run(_names(address)):
        if name != scope:
            with suppress(CoatcheckError, ValueError):
                yield name, bank.scoped(name)


async def _names(address: str) -> list[str]:
    store = store_at(address)
    names: list[str] = []
    try:
        with suppress(CoatcheckError):
            async for name, _ in scopes(store):
                names.append(name)
                if len(names) >= _MOST_SCOPES:
                    break
    finally:
        await store.close()
    return names


def _option(scope: str) -> str:
    return f"--scope {shlex.quote(one_line(scope))}"
