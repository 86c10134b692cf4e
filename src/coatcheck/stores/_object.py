"""A store of objects: S3, Google Cloud Storage, Azure, or obstore's own folder and memory."""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..errors import StoreUnavailableError
from ._answers import (
    AbsentError,
    PastTheEndError,
    TakenError,
    answer_of,
    no_place,
)
from ._keys import check_window, is_key, split_folder, split_key
from ._local_form import LocalForm
from ._protocols import Vitals
from ._services import Address, Clients, connect
from ._thread import in_own_thread
from ._upload import Upload

if TYPE_CHECKING:
    from obstore import ObjectMeta

_Answer = TypeVar("_Answer")

_SMALL_BYTES = 256 * 1024
"""Up to this size a payload is sent in the time that small things have."""
_WINDOW_BYTES = 1024 * 1024
_LARGEST_BYTES = 2**50
"""No service takes an object as large, nor all of them a range that ends further on."""
_PAGE_KEYS = 1_000
_MOST_AT_ONCE = 16
_PROBE = "store/format"
"""Asked for to see whether the service answers, there or not."""
_UNSORTED_BUCKET = "--x-s3"
"""How the names of S3's directory buckets end, which list keys in no order."""


class ObjectStore:
    """Payloads as objects, for any number of threads, processes and machines at once.

    Needs the extra `object`. Each call is answered by the service in a thread of its own: where a
    caller is cancelled, the call is waited for, so nothing is written behind the back of whoever
    undoes the work. An outage is told within 10 seconds. `create` rests on the service's
    conditional put (``If-None-Match``), and is one put whatever the size; a service without it
    raises. A payload over 5 MiB is sent in parts, which nobody sees before the last: what an
    upload leaves that was killed, the bucket's own rule for unfinished uploads has to remove.

    Not to be used in a process that was forked after an object store was used: that raises.

    Args:
        address: ``s3://BUCKET/PREFIX``, ``gs://BUCKET/PREFIX``, ``az://CONTAINER/PREFIX``, each
            with ``?option=value``, ``file:DIR`` or ``memory:``. What an address does not say,
            obstore takes from the service's environment variables, or asks of the machine.
        options: Further ones of the service, by obstore's names: ``endpoint``, ``region``,
            ``access_key_id``.
        client_options: obstore's, for certificates and proxies.
        credential_provider: obstore's, for credentials that change.
        lists_in_order: Whether the service lists keys in ascending order, so that a large folder
            need not be held to be sorted. None is what is known: all do but ``file:`` and the
            directory buckets of S3. Where it turns out to be wrong, that is an outage once.
        clock: Seconds since the epoch, to tell the age of objects.

    Raises:
        ImportError: obstore is not installed.
        ValueError: No such address, or the service takes no such options. From every method:
            the key is none.

    >>> import asyncio
    >>> store = ObjectStore("memory:")
    >>> async def example() -> bytes | None:
    ...     await store.put("a/1", b"kept")
    ...     return await store.get("a/1")
    >>> asyncio.run(example())
    b'kept'
    """

    def __init__(
        self,
        address: str,
        *,
        options: Mapping[str, str] | None = None,
        client_options: Mapping[str, Any] | None = None,
        credential_provider: Callable[..., Any] | None = None,
        lists_in_order: bool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._address = Address.parse(address)
        self._clock = clock
        self._form: LocalForm | None = None
        if self._address.scheme == "file":
            self._form = LocalForm(Path(self._address.place).expanduser().absolute(), clock)
        self._connect = partial(
            connect,
            self._address if self._form is None else _at(self._form.root),
            options=dict(options or {}),
            client_options=dict(client_options or {}),
            credential_provider=credential_provider,
        )
        self._clients: Clients | None = self._connect()
        if lists_in_order is None:
            is_bucket = self._form is None
            lists_in_order = is_bucket and not self._address.place.endswith(_UNSORTED_BUCKET)
        self._lists_in_order = lists_in_order

    @property
    def ends_with_process(self) -> bool:
        """Whether no other process sees what is stored."""
        return self._address.scheme == "memory"

    def __repr__(self) -> str:
        return f"ObjectStore({str(self._address)!r})"

    async def put(self, key: str, payload: bytes) -> None:
        await self._put(key, payload, "overwrite")

    async def create(self, key: str, payload: bytes) -> bool:
        """As the Protocol says.

        Where the service fails after it wrote the payload and the put is sent again, the answer
        is False although this call wrote it.
        """
        try:
            await self._put(key, payload, "create")
        except TakenError:
            return False
        return True

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        await self._send(key, lambda upload: upload.put_stream(chunks))

    async def get(self, key: str) -> bytes | None:
        import obstore

        path, client = self._path(key), self._use().reads
        try:
            return await self._ask(lambda: obstore.get(client, path).bytes().to_bytes())
        except AbsentError:
            return None

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        found: dict[str, bytes | None] = {}

        async def get(key: str) -> None:
            found[key] = await self.get(key)

        await _on_each(keys, get)
        return [found[key] for key in keys]

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        """As the Protocol says.

        Raises:
            ValueError: `start_byte` is negative or past `stop_byte`.
        """
        import obstore

        check_window(start_byte, stop_byte)
        path = self._path(key)
        start_byte, stop_byte = min(start_byte, _LARGEST_BYTES), min(stop_byte, _LARGEST_BYTES)
        size = stop_byte - start_byte
        client = self._use().quick if size <= _WINDOW_BYTES else self._use().reads

        def window() -> bytes:
            if not size:  # what no service takes for a range
                obstore.head(client, path)
                return b""
            found = obstore.get_range(client, path, start=start_byte, end=stop_byte)
            return found.to_bytes()

        try:
            return await self._ask(window)
        except AbsentError:
            return None
        except PastTheEndError:
            return b""

    async def age_seconds(self, key: str) -> float | None:
        import obstore

        path = self._path(key)
        try:
            head = await self._ask(partial(obstore.head, self._use().quick, path))
        except AbsentError:
            return None
        return self._clock() - head["last_modified"].timestamp()

    async def delete(self, key: str) -> None:
        import obstore

        path = self._path(key)
        if self._form is not None and self._form.is_folder(key):
            return
        with suppress(AbsentError):
            await self._ask(partial(obstore.delete, self._use().quick, path))

    async def delete_many(self, keys: Sequence[str]) -> None:
        await _on_each(keys, self.delete)

    async def keys(self, folder: str) -> AsyncIterator[str]:
        """As the Protocol says, page by page where the service itself sorts."""
        split_folder(folder)
        import obstore

        lists: Any = obstore  # its types of listings rest on a package that it can do without
        client, prefix = self._use().quick, self._address.prefix + folder
        if not self._lists_in_order:
            whole = await self._ask(partial(lists.list_with_delimiter, client, prefix))
            for key in self._keys_of(whole["objects"], folder):
                yield key
            return
        stream = lists.list(client, prefix, chunk_size=_PAGE_KEYS)
        last = ""
        while page := await self._ask(partial(next, stream, ())):
            keys = self._keys_of(page, folder)
            if keys and keys[0] <= last:
                self._lists_in_order = False  # from now on all of a folder is sorted here
                raise StoreUnavailableError("the service lists keys out of order")
            for key in keys:
                yield key
            last = keys[-1] if keys else last

    async def vitals(self) -> Vitals:
        """As the Protocol says: the time. How much room there is no service tells."""
        import obstore

        key = f"store/vitals/{os.urandom(8).hex()}"
        await self.put(key, b"")
        try:
            head = await self._ask(partial(obstore.head, self._use().quick, self._path(key)))
        finally:
            await self.delete(key)
        # Services tell whole seconds, rounded down.
        return Vitals(now=head["last_modified"], now_within_seconds=1.0)

    async def close(self) -> None:
        """Let go of all connections."""
        self._clients = None

    def _path(self, key: str) -> str:
        split_key(key)
        return self._address.prefix + key

    def _use(self) -> Clients:
        if _first_process() != os.getpid():
            # The threads that obstore works with did not come along: a call would never end.
            raise StoreUnavailableError(
                "object stores were used before this process was forked; start it by spawn"
            )
        if self._clients is None:
            self._clients = self._connect()
        return self._clients

    async def _ask(self, call: Callable[[], _Answer]) -> _Answer:
        # Not through obstore's own coroutines. Cancelled, they leave a request that the service
        # may still obey; and their threads enter Python, which at its end aborts the process.
        return await in_own_thread(partial(answer_of, call))

    async def _put(self, key: str, payload: bytes, mode: Literal["create", "overwrite"]) -> None:
        import obstore

        path, client = self._path(key), self._use().quick
        if mode == "create" or len(payload) > _SMALL_BYTES:
            # A create is never sent again. Many that meet at one key may have to wait, which is
            # no outage as long as the service answers others.
            await self._send(key, lambda upload: upload.put(payload, mode))
            return
        put = partial(obstore.put, client, path, payload, use_multipart=False)
        try:
            await self._ask(partial(self._write, key, put))
        except AbsentError:
            raise no_place() from None

    async def _send(self, key: str, work: Callable[[Upload], None]) -> None:
        import obstore

        path, clients = self._path(key), self._use()
        ask: Callable[[], Awaitable[object]] | None = None
        if clients.writes is not clients.quick:  # on this machine nothing falls silent
            probe = partial(obstore.head, clients.probe, self._address.prefix + _PROBE)
            ask = partial(self._ask, probe)
        upload = Upload(clients.writes, path, ask)
        await upload.run(partial(self._write, key, partial(work, upload)))

    def _write(self, key: str, call: Callable[[], _Answer]) -> _Answer:
        return call() if self._form is None else self._form.write(key, call)

    def _keys_of(self, page: "Iterable[ObjectMeta]", folder: str) -> list[str]:
        """Return those of a page that lie directly in `folder`, in order."""
        skip = len(self._address.prefix)
        keys = (meta["path"][skip:] for meta in page)
        start = len(folder)
        return sorted(key for key in keys if "/" not in key[start:] and is_key(key))


async def _on_each(keys: Sequence[str], work: Callable[[str], Awaitable[None]]) -> None:
    """Await `work` of each key, some of them at once."""
    import asyncio

    for key in keys:
        split_key(key)
    waiting = iter(dict.fromkeys(keys))

    async def work_on_some() -> None:
        for key in waiting:
            await work(key)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(keys), _MOST_AT_ONCE)):
                group.create_task(work_on_some())
    except ExceptionGroup as failures:  # one outage, met by several requests
        failure = failures.exceptions[0]
    else:
        return
    raise failure


@cache
def _first_process() -> int:
    """Return the process that used an object store first: this one, or one it was forked from."""
    return os.getpid()


def _at(root: Path) -> Address:
    return Address(scheme="file", place=str(root))
