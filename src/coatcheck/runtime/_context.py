"""What all agents, tasks and steps of one run share: a bank, memory, an engine, and its end."""

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cached_property
from os import PathLike
from typing import TypeVar
from weakref import WeakSet

from anyio import CancelScope

from ..bank import Bank, Run, open_bank
from ..errors import RunCancelledError
from ..memory import AgentMemory
from ..records import Kind, Limits
from ..stores import MemoryStore
from ..tools import Tool, memory_tools, retrieval_tools
from ._engine import Engine, InProcess
from ._model import Offer

T = TypeVar("T")


class RunContext:
    """One run: what it keeps, and whether it is to go on. Of one event loop.

    Args:
        bank: Where results are kept; None takes one that ends with the process.
        memory: Its entries; None takes a memory on the bank.
        engine: What runs steps and tasks; None runs them in this process, 8 at once.
        run_name: Of the run of the bank (`Bank.run`) that executors work in; None makes one up.

    >>> import asyncio
    >>> async def example() -> tuple[object, bool]:
    ...     async with RunContext.open("memory:", scope="run-1") as context:
    ...         await context.memory.set("input:region", "EU")
    ...         copy = context.copy()
    ...         return await context.memory.get_value("input:region"), await copy.memory.has(
    ...             "input:region"
    ...         )
    >>> asyncio.run(example())
    ('EU', False)
    """

    def __init__(
        self,
        bank: Bank | None = None,
        *,
        memory: AgentMemory | None = None,
        engine: Engine | None = None,
        run_name: str | None = None,
    ) -> None:
        if bank is None:
            bank = Bank(MemoryStore()) if memory is None else memory.bank
        self.bank = bank
        self.memory = AgentMemory(bank) if memory is None else memory
        self.engine: Engine = InProcess() if engine is None else engine
        self.run_name = f"run-{secrets.token_hex(8)}" if run_name is None else run_name
        self._leases: set[Run] = set()
        self._scopes: set[CancelScope] = set()
        self._copies: WeakSet[RunContext] = WeakSet()
        self._cancelled_for: str | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        address: str | PathLike[str] = "memory:",
        *,
        scope: str = "default",
        limits: Limits | None = None,
        kinds: Iterable[Kind] = (),
        secret: bytes | None = None,
        durable: bool = False,
        journal: str | PathLike[str] | None = None,
        engine: Engine | None = None,
        run_name: str | None = None,
    ) -> AsyncGenerator["RunContext", None]:
        """Open a run with bank and memory on one store, and close that at the end.

        Args:
            address: As for `open_bank`, and so are all others but `engine` and `run_name`.
            scope: The run: who opens the same store and scope sees its entries and artifacts.
            limits: How much is shown, and when.
            kinds: Kinds with a pointer prefix of their own.
            secret: 32 bytes for the ids of keyed puts.
            durable: Whether each write to files is flushed to the disk before it counts.
            journal: A file to note calls in.
            engine: What runs steps and tasks.
            run_name: Of the run of the bank that executors work in; None makes one up.

        Raises:
            ValueError, ImportError, OSError: As `open_bank`.
        """
        async with open_bank(
            address,
            scope=scope,
            limits=limits,
            kinds=kinds,
            secret=secret,
            durable=durable,
            journal=journal,
        ) as bank:
            yield cls(bank, engine=engine, run_name=run_name)

    def copy(self, name: str | None = None) -> "RunContext":
        """Return the context of a run within this one: the same bank, and a memory of its own.

        What the one banks, the other can read. To cancel this run cancels that one too.

        Args:
            name: Where it is given, the same name finds the same memory again.
        """
        part = secrets.token_hex(8) if name is None else name
        memory = AgentMemory(self.bank, scope=f"{self.memory.scope}/{part}")
        other = RunContext(self.bank, memory=memory, engine=self.engine, run_name=self.run_name)
        other._cancelled_for = self._cancelled_for
        other._leases = self._leases
        self._copies.add(other)
        return other

    @cached_property
    def own_tools(self) -> tuple[tuple[Tool, Offer], ...]:
        """Ours, which each step may call: each as it is, and as a model is told of it."""
        tools = [*memory_tools(self.memory), *retrieval_tools(self.bank)]
        return tuple((tool, Offer.of(tool)) for tool in tools)

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called, here or on the context that this is a copy of."""
        return self._cancelled_for is not None

    def cancel(self, reason: str = "") -> None:
        """End the run: whatever `run` waits for is cancelled, and nothing new begins.

        Args:
            reason: What the error says, in one clause.
        """
        if self._cancelled_for is None:
            self._cancelled_for = reason
        for scope in list(self._scopes):
            scope.cancel()
        for other in list(self._copies):
            other.cancel(reason)

    def check(self) -> None:
        """Pass while the run goes on.

        Raises:
            RunCancelledError: It was cancelled.
        """
        if self._cancelled_for is not None:
            raise RunCancelledError(self._cancelled_for)

    @asynccontextmanager
    async def holding(self, name: str | None = None) -> AsyncGenerator[None, None]:
        """Keep what is put and shown in the block, whatever its time, until the block ends.

        Executors do all they do in such a block. One within another, or within a `Bank.run` of
        the host, takes no lease of its own.

        Args:
            name: Of the run; None is `run_name`.

        Raises:
            StoreError: The lease could not be taken.
        """
        if self.bank.current_run is not None:
            yield
            return
        async with self.bank.run(self.run_name if name is None else name) as run:
            self._leases.add(run)
            try:
                yield
            finally:
                self._leases.discard(run)

    async def renew(self) -> None:
        """Renew the lease of a run whose tools may not have called the bank for a while."""
        for run in list(self._leases):
            await run.renew()

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what `call` gives, unless the run is cancelled meanwhile: then stop it.

        Raises:
            RunCancelledError: The run was cancelled, before or meanwhile.
        """
        self.check()
        with CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await call()
            finally:
                self._scopes.discard(scope)
        raise RunCancelledError(self._cancelled_for or "")
