"""Payloads too large for one value of Redis: a head that names parts, which never change."""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import StoreUnavailableError
from ._redis_commands import Command
from ._thread import in_own_thread

if TYPE_CHECKING:
    from ._redis_pools import Pools

PARTS_AT_ONCE = 6
"""Sent before an answer is waited for."""

_FIELDS = ("token", "count", "part_bytes", "size_bytes")
_UNSEEN_SECONDS = 3_600
_RENEW_SECONDS = 600.0
"""Parts that no head names yet live this long, and begin anew that often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Where the bytes of a payload lie. Whoever has it reads them as long as they are there."""

    name: str
    token: str
    """Of this one writing, so that two never mix."""
    part_bytes: int
    size_bytes: int

    @classmethod
    def of_head(cls, name: str, head: Sequence[bytes | None]) -> "Parts | None":
        """Return what the fields of a head say, None where there is no head."""
        token, _, part_bytes, size_bytes = head
        if token is None or part_bytes is None or size_bytes is None:
            return None
        return cls(
            name=name,
            token=token.decode(),
            part_bytes=int(part_bytes),
            size_bytes=int(size_bytes),
        )

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-self.size_bytes // self.part_bytes)

    def key(self, number: int) -> str:
        """Return where one part lies; no key of a store has a `#`."""
        return f"{self.name}#{self.token}#{number}"

    def keys(self) -> list[str]:
        """Return where all parts lie."""
        return [self.key(number) for number in range(self.count)]

    def head(self) -> "Command":
        """Return the command that writes the head."""
        values = (self.token, self.count, self.part_bytes, self.size_bytes)
        pairs = [str(each) for pair in zip(_FIELDS, values, strict=True) for each in pair]
        return ("HSET", self.name, *pairs)

    def ranges(self, start_byte: int, stop_byte: int) -> Iterator[tuple["Command", int]]:
        """Yield the commands that read bytes `[start_byte, stop_byte)`, and what each gives."""
        while start_byte < stop_byte:
            number, start = divmod(start_byte, self.part_bytes)
            stop = min(self.part_bytes, start + stop_byte - start_byte)
            yield ("GETRANGE", self.key(number), start, stop - 1), stop - start
            start_byte += stop - start


def ask_head(name: str) -> "Command":
    """Return the command that reads the head under a name."""
    return ("HMGET", name, *_FIELDS)


async def window(pools: "Pools", parts: Parts, start_byte: int, stop_byte: int) -> bytes | None:
    """Return bytes `[start_byte, stop_byte)`; None where the parts are not there any more."""
    stop_byte = min(stop_byte, parts.size_bytes)
    if start_byte >= stop_byte:
        return b"" if (await pools.ask(("EXISTS", parts.key(0))))[0] else None
    pieces: list[bytes] = []
    commands: list[Command] = []
    waiting_bytes = 0
    for command, size_bytes in parts.ranges(start_byte, stop_byte):
        # No more than a part is waited for at once, as each exchange has its time.
        if commands and waiting_bytes + size_bytes > parts.part_bytes:
            pieces += await pools.ask(*commands)
            commands, waiting_bytes = [], 0
        commands.append(command)
        waiting_bytes += size_bytes
    pieces += await pools.ask(*commands)
    # Part by part, as each may be gone by the time that it is asked for.
    is_whole = sum(map(len, pieces)) == stop_byte - start_byte
    return (pieces[0] if len(pieces) == 1 else b"".join(pieces)) if is_whole else None


class Upload:
    """Parts on their way: nobody sees them before a head names them.

    Args:
        pools: Leads to the server.
        name: Under which the head will be.
        part_bytes: Of each part but the last.
        clock: Seconds since any fixed moment.
    """

    def __init__(
        self,
        pools: "Pools",
        name: str,
        part_bytes: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pools = pools
        self._part_bytes = part_bytes
        self._clock = clock
        self._renewed_at = clock()
        self.parts = Parts(
            name=name, token=secrets.token_hex(8), part_bytes=part_bytes, size_bytes=0
        )

    async def add(self, *pieces: bytes | memoryview) -> None:
        """Write the next parts, together."""
        before = self.parts
        self.parts = Parts(
            name=before.name,
            token=before.token,
            part_bytes=before.part_bytes,
            size_bytes=before.size_bytes + sum(map(len, pieces)),
        )
        commands: list[Command] = [
            ("SET", self.parts.key(number), piece, "EX", _UNSEEN_SECONDS)
            for number, piece in enumerate(pieces, before.count)
        ]
        if self._clock() - self._renewed_at > _RENEW_SECONDS:
            commands += [("EXPIRE", before.key(n), _UNSEEN_SECONDS) for n in range(before.count)]
            self._renewed_at = self._clock()
        await self._pools.ask(*commands)

    async def add_all(self, chunks: Iterable[bytes | memoryview]) -> bytes:
        """Write the joined chunks as parts, but for the last piece, which is returned."""
        from anyio import from_thread

        def take() -> bytes:
            pieces = pieces_of(chunks, self._part_bytes)
            last, ready = next(pieces), list[bytes]()
            for piece in pieces:
                ready.append(last)
                last = piece
                if len(ready) == PARTS_AT_ONCE:
                    # In turn: while a thread makes pieces, the loop would wait for the interpreter
                    from_thread.run(self.add, *ready)
                    ready = []
            if ready:
                from_thread.run(self.add, *ready)
            return last

        return await in_own_thread(take)

    async def discard(self) -> None:
        """Remove what was written, as far as the server can be reached."""
        try:
            await self._pools.ask(("UNLINK", *self.parts.keys()))
        except StoreUnavailableError:
            return  # they go by themselves


def pieces_of(chunks: Iterable[bytes | memoryview], part_bytes: int) -> Iterator[bytes]:
    """Yield the joined chunks in pieces of `part_bytes`; only a lone piece can be empty.

    >>> list(pieces_of([b"ab", b"cdefg", b"h"], 4)), list(pieces_of([], 4))
    ([b'abcd', b'efgh'], [b''])
    """
    waiting: list[bytes] = []
    room_bytes = part_bytes
    for chunk in chunks:
        view, at = memoryview(chunk), 0
        while at < len(view):
            if not room_bytes:  # only when a byte more has come, so that the last piece has some
                yield b"".join(waiting)
                waiting, room_bytes = [], part_bytes
            part = view[at : at + room_bytes]
            # A view may be written over before it is sent. Bytes are not.
            waiting.append(
                chunk if isinstance(chunk, bytes) and len(part) == len(chunk) else bytes(part)
            )
            room_bytes -= len(part)
            at += len(part)
    yield b"".join(waiting)
