"""Which scopes a store has."""

from collections.abc import AsyncGenerator

from ..errors import StoreFormatError
from ..stores import Store
from ._keys import ScopeKeys, is_segment

_SCOPES = "store/scopes/"


class UnknownScopeError(LookupError):
    """A store has no scope of this name: nothing was ever put into it."""


async def scope_keys(store: Store) -> AsyncGenerator[ScopeKeys, None]:
    """Yield the keys of each scope of a store."""
    async for key in store.keys(_SCOPES):
        segment = key.removeprefix(_SCOPES)
        if is_segment(segment):
            yield ScopeKeys(segment)


async def scopes(store: Store) -> AsyncGenerator[tuple[str, ScopeKeys], None]:
    """Yield the plain name and the keys of each scope of a store."""
    async for keys in scope_keys(store):
        name = await store.get(keys.scope)
        if name is not None:
            yield _plain(name), keys


def _plain(name: bytes) -> str:
    try:
        return name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise StoreFormatError("the name of a scope is no text") from None
