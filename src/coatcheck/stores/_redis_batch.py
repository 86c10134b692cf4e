"""Where keys lie on a Redis server, and the one transaction that writes some of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import StoreUnavailableError
from ._redis_commands import WRONG_TYPE, Command, enter, forget, live, transaction
from ._redis_parts import Parts, ask_head

if TYPE_CHECKING:
    from ._redis_pools import Exchange

LONGEST_SECONDS = 100 * 365 * 24 * 3_600.0
RESTLESS = "a key changes faster than it can be followed"

_FOLDER_SLACK_MS = 1_000
_MOST_TRIES = 32


@dataclass(frozen=True, slots=True)
class Places:
    """Where the keys of a store lie, and how long.

    Args:
        prefix: Begins each key of the server.
        ttl_seconds: How long a key lives that has no time of its own.
    """

    prefix: str
    ttl_seconds: float

    def name(self, key: str) -> str:
        """Return the server's key for a key of the store.

        >>> Places("c:", 60).name("s/review-1421/records/1")
        'c:s/{review-1421}/records/1'
        """
        folder, slash, member = key.rpartition("/")
        return self.folder(folder + slash) + member

    def folder(self, folder: str) -> str:
        """Return the server's key of a folder, which begins those of its keys.

        The scope is the hash tag, so that all keys of a scope lie together.
        """
        head, slash, rest = folder.partition("/")
        scope, deep, below = rest.partition("/")
        if head == "s" and deep:
            return f"{self.prefix}s/{{{scope}}}/{below}"
        return f"{self.prefix}{{{head}}}{slash}{rest}"

    def entries(self, keys: Mapping[str, int]) -> list[tuple[str, str, int]]:
        """Return where keys are listed: of each the folder, the last segment, its time in ms."""
        found: list[tuple[str, str, int]] = []
        for key, lives_ms in keys.items():
            folder, slash, member = key.rpartition("/")
            if slash:
                found.append((self.folder(folder + slash), member, lives_ms + _FOLDER_SLACK_MS))
        return found


class Batch:
    """What one transaction writes.

    Args:
        places: Where keys lie.
        payloads: By key, those in parts already sent.
        lives: As in `SupportsBatch.put_many`, and so is `unless`.
        unless: A key; where something is stored under it, nothing is written.
    """

    def __init__(
        self,
        places: Places,
        payloads: Mapping[str, bytes | Parts],
        *,
        lives: Mapping[str, float] | None = None,
        unless: str | None = None,
    ) -> None:
        seconds = dict.fromkeys(payloads, places.ttl_seconds) | dict(lives or {})
        lives_ms = {key: milliseconds(each) for key, each in seconds.items()}
        self.parts = [each for each in payloads.values() if isinstance(each, Parts)]
        self._payloads = {places.name(key): payload for key, payload in payloads.items()}
        self._unless = None if unless is None else places.name(unless)
        self._kept = {places.name(key): ms for key, ms in lives_ms.items() if key not in payloads}
        names = {places.name(key): ms for key, ms in lives_ms.items()}
        tokens = {
            name: each.token if isinstance(each, Parts) else ""
            for name, each in self._payloads.items()
        }
        self._commands = transaction(
            *forget(tokens),
            *enter(places.entries(lives_ms)),
            *(_written(name, each, names[name]) for name, each in self._payloads.items()),
            # Last, and in one order: of two with the same time, the later is not gone first.
            *live(names if self.parts else self._kept),
        )

    async def commit(self, exchange: "Exchange", is_retry: bool) -> bool:  # noqa: FBT001
        """Write all, or nothing; return whether it is written.

        Raises:
            StoreUnavailableError: What was to be kept is gone, or parts that were just sent.
        """
        firsts = [parts.key(0) for parts in self.parts]
        watched = [*self._kept, *firsts, *([] if self._unless is None else [self._unless])]
        for _ in range(_MOST_TRIES):
            if watched:
                _, *there = await exchange(("WATCH", *watched), *self._questions())
                is_taken = self._unless is not None and there.pop()
                if is_taken:
                    await exchange(("UNWATCH",))
                    # An earlier try may have won, and only the answer to it been lost.
                    return is_retry and await self._is_written(exchange)
                if there != self._expected():
                    raise StoreUnavailableError("keys are gone that were just written")
            *_, done = await exchange(*self._commands)
            if done is not None:
                return True
        raise StoreUnavailableError(RESTLESS)

    def _questions(self) -> list[Command]:
        asked: list[Command] = [("EXISTS", name) for name in self._kept]
        asked += [("EXISTS", *parts.keys()) for parts in self.parts]
        if self._unless is not None:
            asked.append(("EXISTS", self._unless))
        return asked

    def _expected(self) -> list[int]:
        return [1] * len(self._kept) + [parts.count for parts in self.parts]

    async def _is_written(self, exchange: "Exchange") -> bool:
        """Return whether what stands there is ours: its key decides for all, as all are one."""
        name = self._unless if self._unless in self._payloads else next(iter(self._payloads), "")
        payload = self._payloads.get(name)
        if isinstance(payload, Parts):
            (head,) = await exchange(ask_head(name))
            return head is not WRONG_TYPE and payload == Parts.of_head(name, head)
        (standing,) = await exchange(("GET", name))
        return payload is not None and standing == payload


def milliseconds(seconds: float) -> int:
    """Return a time as Redis takes it."""
    return math.ceil(min(seconds, LONGEST_SECONDS) * 1_000)


def _written(name: str, payload: bytes | Parts, lives_ms: int) -> Command:
    if isinstance(payload, Parts):
        return payload.head()
    return ("SET", name, payload, "PX", lives_ms)
