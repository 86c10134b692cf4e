"""A store on a Redis server, which processes on several machines share."""

import re
import warnings
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from ..errors import StoreUnavailableError
from ._keys import check_batch, check_ttl, check_window, split_folder, split_key
from ._protocols import Vitals
from ._redis_batch import LONGEST_SECONDS, RESTLESS, Batch, Places, milliseconds
from ._redis_commands import (
    WRONG_TYPE,
    Command,
    delete,
    delete_unchanged,
    enter,
    list_page,
    live,
    transaction,
)
from ._redis_parts import PARTS_AT_ONCE, Parts, Upload, ask_head, window
from ._redis_url import RedisAddress

if TYPE_CHECKING:
    from ._redis_pools import Exchange

_PREFIX = "coatcheck:"
_TTL_SECONDS = 24 * 3_600.0
_PART_BYTES = 2 * 1024 * 1024
_LARGEST_VALUE_BYTES = 512 * 1024 * 1024
_FIRST_PAGE, _LATER_PAGES = 128, 1_024
_MOST_AT_ONCE = 128
_FARTHEST_BYTE = 1 << 60
_MOST_TRIES = 32
_FACT = re.compile(rb"^(\w+):(\d+)\r?$", re.MULTILINE)
_KNOWN_PARTS = 1_024
_FOREIGN = "something of another program lies where a payload belongs"


class RedisStore:
    """Payloads on a Redis server, for any number of machines, processes, threads and event loops.

    Needs the `redis` extra, and Redis 6.2 or later; a cluster will not do. Nothing stays for ever:
    what is put without a time is gone after `ttl_seconds`. Connections are made when they are
    needed, in a pool for each event loop, and closed at the latest when their loop ends. An outage
    is told within 10 seconds. A payload larger than a part is stored in parts, at any size.

    Args:
        url: ``redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]``, ``rediss://…`` for TLS, or
            ``unix:///PATH?db=DB``. After ``?`` it may hold `prefix`, `ttl_seconds`, and what
            redis-py calls ``ssl_…``.
        prefix: Begins each key of the server that is the store's; None is that of the URL, else
            ``coatcheck:``.
        ttl_seconds: None is that of the URL, else 24 hours. So is 0 or less, with a warning.
        part_bytes: The largest value of Redis that is written, at most 512 MiB.

    Raises:
        ValueError: From the constructor: no such URL, a prefix with braces, a part too large. From
            every method: the key is none. Nothing is asked of the server then.
        ImportError: The extra is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str | None = None,
        ttl_seconds: float | None = None,
        part_bytes: int = _PART_BYTES,
    ) -> None:
        address = RedisAddress.parse(url)
        prefix = next((given for given in (prefix, address.prefix) if given is not None), _PREFIX)
        if not 0 < part_bytes <= _LARGEST_VALUE_BYTES:
            raise ValueError(f"part_bytes is 1 to {_LARGEST_VALUE_BYTES:,}, got {part_bytes:,}")
        if {"{", "}"} & set(prefix):
            raise ValueError(f"a prefix has no braces, got {prefix!r}")
        try:
            from ._redis_pools import Pools
        except ImportError as error:
            message = "RedisStore needs an extra: pip install 'coatcheck[redis]'"
            raise ImportError(message) from error
        self._pools = Pools(address.url)
        lasting = _lasting(address.ttl_seconds if ttl_seconds is None else ttl_seconds)
        self._places = Places(prefix, lasting)
        self._part_bytes = part_bytes
        # Of keys that were read. Parts never change, and go with the head that named them.
        self._known: dict[str, Parts] = {}

    @property
    def ttl_seconds(self) -> float:
        """How long a key stays that was put without a time of its own."""
        return self._places.ttl_seconds

    async def put(self, key: str, payload: bytes) -> None:
        await self.put_many({key: payload})

    async def put_expiring(self, key: str, payload: bytes, ttl_seconds: float) -> None:
        """As the Protocol says.

        Raises:
            ValueError: `ttl_seconds` is not more than 0.
        """
        await self.put_many({key: payload}, ttl_seconds={key: ttl_seconds})

    async def put_many(
        self,
        payloads: Mapping[str, bytes],
        *,
        ttl_seconds: Mapping[str, float] | None = None,
        unless: str | None = None,
    ) -> bool:
        """As the Protocol says.

        Raises:
            ValueError: A time is not more than 0.
            StoreUnavailableError: A key whose time was to begin anew is not there.
        """
        lives = ttl_seconds or {}
        check_batch(payloads, lives, unless)
        uploads: list[Upload] = []
        try:
            sent = await self._sent(payloads, uploads)
        except BaseException:
            await _discard(uploads)
            raise
        return await self._commit(Batch(self._places, sent, lives=lives, unless=unless), uploads)

    async def create(self, key: str, payload: bytes) -> bool:
        split_key(key)
        if len(payload) > self._part_bytes:
            return await self.put_many({key: payload}, unless=key)
        name, lives_ms = self._places.name(key), milliseconds(self._places.ttl_seconds)
        setting: Command = ("SET", name, payload, "PX", lives_ms, "NX")
        commands = transaction(setting, *enter(self._places.entries({key: lives_ms})))

        async def create(exchange: "Exchange", is_retry: bool) -> bool:  # noqa: FBT001
            *_, (answer, *_) = await exchange(*commands)
            if answer is not None or not is_retry:
                return answer is not None
            # An earlier try may have won, and only the answer to it been lost.
            (standing,) = await exchange(("GET", name))
            return bool(standing == payload)

        return await self._pools.talk(create)

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        split_key(key)
        upload = Upload(self._pools, self._places.name(key), self._part_bytes)
        try:
            last = await upload.add_all(chunks)
            if upload.parts.count:
                await upload.add(last)
        except BaseException:
            await _discard([upload])
            raise
        payload = upload.parts if upload.parts.count else last
        await self._commit(Batch(self._places, {key: payload}), [upload])

    async def keep(self, keys: Collection[str], ttl_seconds: float) -> None:
        """As the Protocol says.

        Raises:
            ValueError: `ttl_seconds` is not more than 0.
        """
        for key in keys:
            split_key(key)
        check_ttl(ttl_seconds)
        lives_ms = milliseconds(ttl_seconds)
        names = {self._places.name(key): lives_ms for key in keys}
        entries = self._places.entries(dict.fromkeys(keys, lives_ms))
        if names:
            await self._pools.ask(*transaction(*live(names, at_least=True), *enter(entries)))

    async def get(self, key: str) -> bytes | None:
        split_key(key)
        name = self._places.name(key)
        return await self._read(name, ("GET", name), 0, _FARTHEST_BYTE)

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        for key in keys:
            split_key(key)
        found: list[bytes | None] = []
        for start in range(0, len(keys), _MOST_AT_ONCE):
            some = keys[start : start + _MOST_AT_ONCE]
            answers = await self._pools.ask(*(("GET", self._places.name(key)) for key in some))
            for key, answer in zip(some, answers, strict=True):
                found.append(await self.get(key) if answer is WRONG_TYPE else answer)
        return found

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        """As the Protocol says.

        Raises:
            ValueError: `start_byte` is negative or past `stop_byte`.
        """
        split_key(key)
        check_window(start_byte, stop_byte)
        name = self._places.name(key)
        start, stop = min(start_byte, _FARTHEST_BYTE), min(stop_byte, _FARTHEST_BYTE)
        if start < stop:
            found = await self._read(name, ("GETRANGE", name, start, stop - 1), start, stop)
            if found or found is None:
                return found
        # Redis answers nothing, whether the key is missing or its payload ends before.
        (is_there,) = await self._pools.ask(("EXISTS", name))
        return b"" if is_there else None

    async def delete(self, key: str) -> None:
        await self.delete_many([key])

    async def delete_many(self, keys: Sequence[str]) -> None:
        for key in keys:
            split_key(key)
        for start in range(0, len(keys), _MOST_AT_ONCE):
            some = keys[start : start + _MOST_AT_ONCE]
            entries = self._places.entries(dict.fromkeys(some, 0))
            await self._pools.ask(delete([self._places.name(key) for key in some], entries))

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        for key in payloads:
            split_key(key)
        others: set[str] = set()
        for some in _in_bounds(payloads, self._part_bytes):
            commands: list[Command] = []
            for key in some:
                folder, slash, member = key.rpartition("/")
                listing = self._places.folder(folder + slash)
                commands.append(
                    delete_unchanged(self._places.name(key), payloads[key], listing, member)
                )
            answers = await self._pools.ask(*commands)
            others |= {key for key, is_other in zip(some, answers, strict=True) if is_other}
        return others

    async def keys(self, folder: str) -> AsyncIterator[str]:
        split_folder(folder)
        name = self._places.folder(folder)
        after, count = b"", _FIRST_PAGE
        while True:
            ((after, members),) = await self._pools.ask(list_page(name, after.decode(), count))
            for member in members:
                yield folder + member.decode()
            if not after:
                return
            count = _LATER_PAGES

    async def vitals(self) -> Vitals:
        """As the Protocol says; of room, what the server may take where it has a limit."""
        ((seconds, micros),) = await self._pools.ask(("TIME",))
        (reply,) = await self._pools.ask(("INFO", "memory"))
        facts = dict(_FACT.findall(cast("bytes", reply)))
        limit, used = (int(facts.get(name, 0)) for name in (b"maxmemory", b"used_memory"))
        return Vitals(
            now=datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(micros)),
            free_bytes=max(limit - used, 0) if limit else None,
            total_bytes=limit or None,
        )

    async def close(self) -> None:
        """Close every connection, once what goes on over it has ended. Nothing works afterwards."""
        await self._pools.close()

    async def _read(self, name: str, command: Command, start: int, stop: int) -> bytes | None:
        """Return what `command` reads of a whole payload, or the same of one in parts."""
        lost, reason = "", RESTLESS
        for _ in range(_MOST_TRIES):
            parts = self._known.get(name)
            if parts is None:
                (answer,) = await self._pools.ask(command)
                if answer is not WRONG_TYPE:
                    return cast("bytes | None", answer)
                (head,) = await self._pools.ask(ask_head(name))
                if head is WRONG_TYPE:
                    reason = _FOREIGN
                    continue
                parts = Parts.of_head(name, head)
            if parts is None:  # it was removed in between
                continue
            found = await window(self._pools, parts, start, stop)
            if found is not None:
                self._remember(parts)
                return found
            self._known.pop(name, None)
            if parts.token == lost:  # still the head says so: they are gone for good
                return None
            lost = parts.token
        raise StoreUnavailableError(reason)

    def _remember(self, parts: Parts) -> None:
        if len(self._known) >= _KNOWN_PARTS:
            self._known.clear()
        self._known[parts.name] = parts

    async def _sent(
        self, payloads: Mapping[str, bytes], uploads: list[Upload]
    ) -> dict[str, bytes | Parts]:
        """Return payloads as they will be written; what is too much for one command is sent."""
        sent: dict[str, bytes | Parts] = dict(payloads)
        room_bytes = self._part_bytes
        for key, payload in payloads.items():
            if len(payload) <= room_bytes:
                room_bytes -= len(payload)
                continue
            upload = Upload(self._pools, self._places.name(key), self._part_bytes)
            uploads.append(upload)
            view = memoryview(payload)
            parts = [
                view[at : at + self._part_bytes] for at in range(0, len(view), self._part_bytes)
            ]
            for at in range(0, len(parts), PARTS_AT_ONCE):
                await upload.add(*parts[at : at + PARTS_AT_ONCE])
            sent[key] = upload.parts
        return sent

    async def _commit(self, batch: Batch, uploads: Collection[Upload]) -> bool:
        """Make all of a batch visible at once; return whether that was done."""
        try:
            wrote = await self._pools.talk(batch.commit)
        except StoreUnavailableError as error:
            # Else the transaction may yet be done, or is done: then its parts are in use. The same
            # goes for a call that was cancelled. If it is not, they go within an hour.
            if not error.unsettled:
                await _discard(uploads)
            raise
        if not wrote:
            await _discard(uploads)
            return False
        for parts in batch.parts:
            self._remember(parts)
        return True


def _lasting(ttl_seconds: float | None) -> float:
    """Return a time that a key may live."""
    if ttl_seconds is None:
        return _TTL_SECONDS
    if not ttl_seconds > 0:
        warnings.warn(
            f"ttl_seconds must be more than 0, got {ttl_seconds}; nothing stays for ever in Redis: "
            f"keys live {_TTL_SECONDS:,.0f} s, the default",
            stacklevel=3,
        )
        return _TTL_SECONDS
    return min(ttl_seconds, LONGEST_SECONDS)


def _in_bounds(payloads: Mapping[str, bytes], most_bytes: int) -> Iterator[list[str]]:
    """Yield keys by as many as are asked for at once, unless their payloads are too large."""
    some: list[str] = []
    size_bytes = 0
    for key, payload in payloads.items():
        size_bytes += len(payload)
        if some and (len(some) == _MOST_AT_ONCE or size_bytes > most_bytes):
            yield some
            some, size_bytes = [], len(payload)
        some.append(key)
    if some:
        yield some


async def _discard(uploads: Collection[Upload]) -> None:
    from anyio import CancelScope

    with CancelScope(shield=True):
        for upload in uploads:
            await upload.discard()
