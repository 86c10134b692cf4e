"""A bank from an address: builds the store, and closes it."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from os import PathLike, fspath
from pathlib import Path

from ..records import Kind, Limits
from ..stores import FileStore, MemoryStore, Store
from ._bank import Bank


@asynccontextmanager
async def open_bank(
    address: str | PathLike[str],
    *,
    scope: str = "default",
    limits: Limits | None = None,
    kinds: Iterable[Kind] = (),
    secret: bytes | None = None,
    durable: bool = False,
) -> AsyncGenerator[Bank, None]:
    """Open a bank on the store at `address`. At the end stop its work, and close the store.

    Args:
        address: ``memory:``, ``file:DIR``, or a path; a leading ``~`` is the user's home.
        scope: As for `Bank`, and so are `limits`, `kinds` and `secret`.
        limits: How much is shown, and when.
        kinds: Kinds with a pointer prefix of their own.
        secret: 32 bytes for the ids of keyed puts.
        durable: Whether each write to files is flushed to the disk before it counts.

    Raises:
        ValueError: The address names no store that this version has.

    >>> import asyncio
    >>> async def example() -> object:
    ...     async with open_bank("memory:") as bank:
    ...         artifact = await bank.put({"rows": [1, 2, 3]})
    ...         return await bank.get(artifact.pointer)
    >>> asyncio.run(example())
    {'rows': [1, 2, 3]}
    """
    store = store_at(address, durable=durable)
    try:
        bank = Bank(store, scope=scope, limits=limits, kinds=kinds, secret=secret)
        try:
            yield bank
        finally:
            bank.end_queries()
            await bank.handles.stop()
    finally:
        await store.close()


def store_at(address: str | PathLike[str], *, durable: bool = False) -> Store:
    """Return the store at an address.

    Raises:
        ValueError: The address names no store that this version has.
    """
    text = fspath(address)
    scheme, colon, rest = text.partition(":")
    if not isinstance(address, str) or not colon or "/" in scheme:
        if text in {"", "memory", "file"}:
            raise ValueError(f"no store at {text!r}: use memory:, file:DIR or a path (./{text})")
        return FileStore(Path(text).expanduser(), durable=durable)
    if scheme == "memory" and not rest:
        return MemoryStore()
    if scheme == "file" and rest:
        return FileStore(Path(rest.removeprefix("//")).expanduser(), durable=durable)
    raise ValueError(f"no store at {text!r}: use memory:, file:DIR or a path")
