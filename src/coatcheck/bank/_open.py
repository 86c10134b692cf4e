"""A bank from an address: builds the store, and closes it."""

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, nullcontext
from os import PathLike, fspath
from pathlib import Path

from ..records import Kind, Limits
from ..stores import FileStore, MemoryStore, Store
from ._bank import Bank
from ._journal import Journal
from ._keys import FORMAT

_OBJECTS = frozenset({"s3", "gs", "az"})
_REDIS = frozenset({"redis", "rediss", "unix"})
_CREDENTIALS = re.compile(r"//[^/]*@")
_FORMS = "use memory:, file:DIR or a path, redis://HOST, s3://BUCKET/PREFIX, gs:// or az://"


@asynccontextmanager
async def open_bank(
    address: str | PathLike[str],
    *,
    scope: str = "default",
    limits: Limits | None = None,
    kinds: Iterable[Kind] = (),
    secret: bytes | None = None,
    durable: bool = False,
    journal: str | PathLike[str] | None = None,
) -> AsyncGenerator[Bank, None]:
    """Open a bank on the store at `address`. At the end stop its work, and close the store.

    Args:
        address: ``memory:``, ``file:DIR``, or a path; a leading ``~`` is the user's home.
            ``redis://HOST:PORT/DB``, ``rediss://…`` and ``unix:///PATH`` are for `RedisStore`, and
            need the extra `redis`.
            ``s3://BUCKET/PREFIX``, ``gs://BUCKET/PREFIX``, ``az://CONTAINER/PREFIX``, each with
            ``?option=value``, are for `ObjectStore`, and need the extra `object`.
        scope: As for `Bank`, and so are `limits`, `kinds` and `secret`.
        limits: How much is shown, and when.
        kinds: Kinds with a pointer prefix of their own.
        secret: 32 bytes for the ids of keyed puts.
        durable: Whether each write to files is flushed to the disk before it counts.
        journal: A file to note calls in, for ``coatcheck stats`` and ``coatcheck log``.

    Raises:
        ValueError: The address names no store that this version has.
        ImportError: Its store needs an extra.
        OSError: The journal cannot be opened.

    >>> import asyncio
    >>> async def example() -> object:
    ...     async with open_bank("memory:") as bank:
    ...         artifact = await bank.put({"rows": [1, 2, 3]})
    ...         return await bank.get(artifact.pointer)
    >>> asyncio.run(example())
    {'rows': [1, 2, 3]}
    """
    with nullcontext() if journal is None else Journal(journal) as notes:
        store = store_at(address, durable=durable)
        try:
            bank = Bank(
                store, scope=scope, limits=limits, kinds=kinds, secret=secret, journal=notes
            )
        except BaseException:
            await store.close()
            raise
        async with bank.owning():
            yield bank


def store_at(address: str | PathLike[str], *, durable: bool = False) -> Store:
    """Return the store at an address.

    Raises:
        ValueError: The address names no store that this version has.
        ImportError: Its store needs an extra.
    """
    folder = folder_at(address)
    if folder is not None:
        return FileStore(folder, durable=durable)
    text = fspath(address)
    scheme, colon, rest = text.partition(":")
    if not colon:
        raise ValueError(f"no store at {text!r}: {_FORMS}; ./{text} is a path")
    if scheme == "memory" and not rest:
        return MemoryStore()
    if scheme in _OBJECTS:
        from ..stores import ObjectStore

        return ObjectStore(text)
    if scheme in _REDIS:
        from ..stores import RedisStore

        return RedisStore(text)
    raise ValueError(f"no store at {without_secrets(text)!r}: {_FORMS}")


async def is_begun(address: str | PathLike[str]) -> bool:
    """Return whether a store is at an address, to which something was put.

    Where everything has its time, one is gone some time after all that was put there.

    Raises:
        StoreUnavailableError: It cannot be reached.
        ValueError, ImportError: As `store_at`.
    """
    store = store_at(address)
    try:
        return await store.get(FORMAT) is not None
    finally:
        await store.close()


def folder_at(address: str | PathLike[str]) -> Path | None:
    """Return the folder of a file store, None where the address names no such store.

    >>> folder_at("file:/tmp/a"), folder_at("./a:b"), folder_at("memory:")
    (PosixPath('/tmp/a'), PosixPath('a:b'), None)
    """
    text = fspath(address)
    scheme, colon, rest = text.partition(":")
    if not isinstance(address, str) or not colon or "/" in scheme:
        return None if text in {"", "memory", "file"} else Path(text).expanduser()
    return Path(rest.removeprefix("//")).expanduser() if scheme == "file" and rest else None


def without_secrets(address: str | PathLike[str]) -> str:
    """Return an address as it may be shown: without user, password and options.

    >>> without_secrets("s3://bucket/a?secret_access_key=x"), without_secrets("redis://:x@host/0")
    ('s3://bucket/a', 'redis://…@host/0')
    """
    return _CREDENTIALS.sub("//…@", fspath(address).partition("?")[0])
