"""The seam below the executors: what runs when. Only keys cross it; values are in memory."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work: a task, a step or an item."""

    key: str
    """Of its entry in memory; unique among those that run together."""
    after: tuple[str, ...] = ()
    """Keys of the units that have to succeed first."""


@dataclass(frozen=True, slots=True)
class Settled:
    """How one unit ended."""

    key: str
    error: str | None = None
    """Why it failed, or was not run at all; None where it succeeded."""
    blocked_by: str | None = None
    """The unit whose failure kept it from running, directly or by way of others."""


Work = Callable[[str], Awaitable[str | None]]
"""Does the work of a unit. Returns why it failed, None where it succeeded."""
Tell = Callable[[Settled], Awaitable[None]]


class Engine(Protocol):
    """Runs units after those that they depend on."""

    async def run(
        self, units: Iterable[Unit], work: Work, tell: Tell, *, width: int | None = None
    ) -> None:
        """Run each unit as soon as all that it comes after have succeeded.

        `tell` is awaited for each unit, in the order in which they end and before anything starts
        that comes after it. What comes after a failed unit is not run. An exception of `work` ends
        the run: nothing more starts, what goes on ends, then it is raised. A cancelled run cancels
        what goes on.

        Args:
            units: Start in this order, as far as they may.
            work: Called once for each that is run.
            tell: Told of each, also of those that were not run.
            width: How many go on at once; None is the engine's own number.

        Raises:
            ValueError: Two have the same key, one comes after a key that is none of theirs, or
                they come after each other in a circle.
        """
        ...

    def slot(self) -> AbstractAsyncContextManager[object]:
        """Return what is held while a model is asked: so many requests go on at once.

        Not held while tools run, as those may ask models themselves.
        """
        ...


class InProcess:
    """Runs units as tasks of one event loop. Nothing waits for a round of others to end.

    Args:
        concurrency: How many units of a run go on at once, and how many requests to models.

    Raises:
        ValueError: `concurrency` is less than 1.
    """

    def __init__(self, concurrency: int = CONCURRENCY) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be 1 or more, got {concurrency}")
        self.concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)

    def slot(self) -> AbstractAsyncContextManager[object]:
        """As the Protocol says."""
        return self._slots

    async def run(
        self, units: Iterable[Unit], work: Work, tell: Tell, *, width: int | None = None
    ) -> None:
        """As the Protocol says.

        Raises:
            ValueError: Two have the same key, one comes after a key that is none of theirs, or
                they come after each other in a circle.
        """
        graph = _Graph(units)
        limit = self.concurrency if width is None else width
        running: dict[asyncio.Task[str | None], str] = {}
        failure: BaseException | None = None
        try:
            while running or (graph.ready and failure is None):
                while graph.ready and failure is None and len(running) < limit:
                    key = graph.ready.popleft()
                    running[asyncio.ensure_future(work(key))] = key
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in [each for each in running if each in done]:
                    key = running.pop(task)
                    error = task.exception()
                    if error is not None:
                        failure = failure or error
                        continue
                    for settled in graph.settle(key, task.result()):
                        await tell(settled)
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
        if failure is not None:
            raise failure


class _Graph:
    """Which units may start, and which never will."""

    def __init__(self, units: Iterable[Unit]) -> None:
        known = list(units)
        self._waits_for = {unit.key: set(unit.after) for unit in known}
        if len(self._waits_for) < len(known):
            raise ValueError("two units have the same key")
        self._followers: dict[str, list[str]] = {}
        for unit in known:
            for key in self._waits_for[unit.key]:
                if key not in self._waits_for:
                    raise ValueError(f"unit {unit.key!r} comes after {key!r}, which is none")
                self._followers.setdefault(key, []).append(unit.key)
        self.ready = deque(unit.key for unit in known if not unit.after)
        self._check_no_circle(known)

    def _check_no_circle(self, units: Iterable[Unit]) -> None:
        left = {unit.key: len(set(unit.after)) for unit in units}
        free = list(self.ready)
        for key in free:
            for follower in self._followers.get(key, ()):
                left[follower] -= 1
                if not left[follower]:
                    free.append(follower)
        if len(free) < len(left):
            raise ValueError("units come after each other in a circle")

    def settle(self, key: str, error: str | None) -> list[Settled]:
        """Return what has ended now: the unit, and where it failed all that came after it."""
        if error is None:
            for follower in self._followers.get(key, ()):
                if follower in self._waits_for:
                    self._waits_for[follower].discard(key)
                    if not self._waits_for[follower]:
                        self.ready.append(follower)
            return [Settled(key)]
        ended, at = [Settled(key, error)], 0
        while at < len(ended):
            for follower in self._followers.get(ended[at].key, ()):
                if self._waits_for.pop(follower, None) is not None:
                    why = f"dependency {_name(key)} failed"
                    ended.append(Settled(follower, why, blocked_by=key))
            at += 1
        return ended


def _name(key: str) -> str:
    """Return what a reader calls a unit: its key without the namespace."""
    return repr(key.partition(":")[2] or key)
