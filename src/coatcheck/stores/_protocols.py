"""What a store promises, and what only some can do. Nothing here moves a byte."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..records import dataclass


class Store(Protocol):
    """Where payloads lie. Keys are opaque ASCII paths chosen by the bank, `/` between segments.

    A segment has 1 to 200 of `A-Z a-z 0-9 _ ~ % . -`, no dot first; a key has at most 900
    characters, does not begin with the segment `tmp`, and is never the folder of another key.
    A store may refuse other keys with `ValueError`.

    Every method may raise `StoreUnavailableError`. Safe for concurrent tasks, threads and
    event loops: a store holds no state that is bound to a loop.
    """

    async def put(self, key: str, payload: bytes) -> None:
        """Write `payload` whole, or not at all. Overwrites."""
        ...

    async def get(self, key: str) -> bytes | None:
        """Return the whole payload, or None where nothing is stored."""
        ...

    async def delete(self, key: str) -> None:
        """Remove the payload. A missing key is no error."""
        ...

    def keys(self, folder: str) -> AsyncIterator[str]:
        """Yield the keys directly in `folder` (it ends in `/`), in ascending order."""
        ...

    async def close(self) -> None:
        """Let go of whatever the store holds. Called once, by whoever built it."""
        ...


@runtime_checkable
class SupportsRange(Protocol):
    """A store that can send one window without sending the rest."""

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        """Return bytes `[start_byte, stop_byte)`, clipped to the payload; None where no key is.

        Raises:
            ValueError: `start_byte` is negative or past `stop_byte`.
        """
        ...


@runtime_checkable
class SupportsGather(Protocol):
    """A store that sends many small payloads sooner than one after the other."""

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the whole payload of each of `keys`, in their order, None where nothing is stored.

        Each is as of some moment of this call, not all of the same one. All are held at once.
        """
        ...


@runtime_checkable
class SupportsPurge(Protocol):
    """A store that removes many payloads sooner than one after the other."""

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove the payload of each of `keys`, in no order. A missing key is no error.

        Where it fails, some may be gone and others not.
        """
        ...


@runtime_checkable
class SupportsPath(Protocol):
    """A store whose payloads are files of this machine, as they are."""

    async def path(self, key: str) -> Path | None:
        """Return the file that holds the payload, to be read only; None where no key is.

        Absolute. What is in the file never changes, but the next `delete` may remove it, and the
        next `put` puts another one in its place.
        """
        ...


@runtime_checkable
class SupportsStream(Protocol):
    """A store that can take a payload piece by piece, in bounded memory."""

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        """Write the joined `chunks` whole, or not at all. Overwrites.

        `chunks` is consumed once, in a worker thread, as it may block: any number of streams
        may wait at once. What it raises is passed on, and then nothing is stored.
        """
        ...


@runtime_checkable
class SupportsCopy(Protocol):
    """A store that can take over a file of this machine without moving it through Python."""

    async def put_copy(self, key: str, path: Path, look: Callable[[bytes], object]) -> None:
        """Write what the file at `path` holds whole, or not at all. Overwrites.

        `look` is called with all that will be stored, piece by piece and in a worker thread,
        before any of it can be seen. What it raises, or the opening and reading of the file, is
        passed on, and then nothing is stored.
        """
        ...


@runtime_checkable
class SupportsCreate(Protocol):
    """A store that can let exactly one of several writers win."""

    async def create(self, key: str, payload: bytes) -> bool:
        """Write `payload` where nothing is stored. Return whether this call wrote it."""
        ...


@runtime_checkable
class SupportsCompare(Protocol):
    """A store that removes what is still as it was read, and nothing that came since."""

    async def delete_unchanged(self, payloads: Mapping[str, bytes]) -> set[str]:
        """Remove each key of `payloads` under which exactly that payload is stored.

        To compare and to remove is one step among all who remove by this method: what is
        created behind the removal of another of them stays. A plain `delete` is none of them.

        Returns:
            The keys under which something else is stored now. A missing key is none of them.
        """
        ...


@runtime_checkable
class SupportsExpiry(Protocol):
    """A store that forgets by itself."""

    async def put_expiring(self, key: str, payload: bytes, ttl_seconds: float) -> None:
        """As `put`; the key is gone once `ttl_seconds` (more than 0) have passed."""
        ...

    async def keep(self, keys: Collection[str], ttl_seconds: float) -> None:
        """Let `keys` stay for at least `ttl_seconds` from now. One that is missing is no error."""
        ...


@runtime_checkable
class SupportsTtl(Protocol):
    """A store that keeps nothing for ever, whatever it was told."""

    @property
    def ttl_seconds(self) -> float:
        """How long a key stays that was put without a time of its own."""
        ...


@runtime_checkable
class SupportsBatch(Protocol):
    """A store that can write several keys, all or nothing."""

    async def put_many(
        self,
        payloads: Mapping[str, bytes],
        *,
        ttl_seconds: Mapping[str, float] | None = None,
        unless: str | None = None,
    ) -> bool:
        """Write all `payloads`, or none of them. Overwrites. Return whether it wrote.

        Args:
            payloads: By key. Of two that have the same time, the later one is not gone first.
            ttl_seconds: As of `put_expiring`, by key, where the store has `SupportsExpiry`. A key
                that is not among `payloads` is stored already, and its time begins anew.
            unless: A key; where something is stored under it, nothing is written.

        Raises:
            ValueError: A time is not more than 0.
            StoreUnavailableError: A key whose time was to begin anew is not there.
        """
        ...


@runtime_checkable
class SupportsAge(Protocol):
    """A store that knows when it was given a payload."""

    async def age_seconds(self, key: str) -> float | None:
        """Return how long ago the payload was written, or begun, None where no key is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What a backend says of itself; None of what it does not say."""

    now: datetime | None = None
    """Its clock."""
    now_within_seconds: float = 0.0
    """By how much `now` may lie behind, as the backend rounds it."""
    free_bytes: int | None = None
    total_bytes: int | None = None


@runtime_checkable
class SupportsVitals(Protocol):
    """A store whose backend has a clock or room of its own, and can be asked for them."""

    async def vitals(self) -> Vitals:
        """Ask the backend. May write something small for it, and remove it again."""
        ...


@runtime_checkable
class EndsWithProcess(Protocol):
    """A store whose payloads are gone when this process is, where `ends_with_process` is true."""

    @property
    def ends_with_process(self) -> bool:
        """Whether no other process, and none after this one, sees what is stored."""
        ...
