"""How a suite drives a framework: what a subclass implements, and what the cases share."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from ..bank import Bank
from ..errors import StoreUnavailableError
from ..records import Limits
from ..stores import MemoryStore
from ._adapter_script import How, Seen, Turn
from ._adapter_tools import Tools

INSTRUCTIONS = "You are the clerk of a small shop."
"""The system text of the user, which a driver gives to each agent."""

PROMPT = "What is the total of all orders?"
"""What the user asks, in each run."""

LIMITS = Limits(inline_bytes=1_000)
"""With these, a hundred rows are large."""


class AdapterDriver:
    """The part of `AdapterSuite` that a subclass implements."""

    pytestmark = pytest.mark.anyio

    async def run(
        self,
        bank: Bank,
        tools: Sequence[Any],
        script: Sequence[Turn],
        *,
        session: str | None = None,
        limits: Limits | None = None,
        how: How = "async",
    ) -> Seen:
        """Run an agent with the adapter to its final answer.

        The agent's own system text is `INSTRUCTIONS`, the user says `PROMPT`, and the model asks a
        `ScriptedModel` for its replies.

        Args:
            bank: For the adapter.
            tools: Typed functions, to be made tools of the framework as its users do, not
                mirrored; or what `failing`, `photo` or `injecting` made, which stays as it is.
            script: What the model says.
            session: The id of the session, conversation or thread. None where a user would give
                none: the driver may take an id of its own, the same each time.
            limits: For the adapter.
            how: Whether it is awaited, called from a thread without an event loop, or streamed.
        """
        raise NotImplementedError("run an agent of the framework")

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        """Return the bank that an adapter over `bank` keeps a session's results in."""
        raise NotImplementedError("return what the adapter's bank_for does")

    def failing(self, text: str) -> object:
        """Return a tool ``fail()`` whose call fails with `text`, so that the model reads it.

        Here a function that raises; a framework whose runs end with that has its own way.
        """

        def fail() -> str:
            """Fail."""
            raise ValueError(text)

        return fail

    def photo(self, text: str, image: bytes) -> object:
        """Return a tool ``photo()``, whose result is `text` beside a PNG."""
        raise NotImplementedError("return a tool of the framework")

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> object:
        """Return a tool ``inject(items)`` that returns ``take(injected, items)``.

        What is injected is what the framework hands to tools beside their arguments: a context,
        a state, a runtime.
        """
        raise NotImplementedError("return a tool of the framework")

    @pytest.fixture
    def bank(self) -> Bank:
        """Return an empty bank."""
        return Bank(MemoryStore(), scope="shop")

    @pytest.fixture
    def tools(self) -> Tools:
        """Return tools that remember their calls."""
        return Tools()

    async def count(self, bank: Bank, session: str | None = None) -> int:
        """Return how many artifacts a session has."""
        return (await (await self.bank_for(bank, session)).usage()).artifacts


class Outage:
    """A store that fails while `is_out`."""

    def __init__(self) -> None:
        self.is_out = False
        self._store = MemoryStore()

    async def put(self, key: str, payload: bytes) -> None:
        """Write a payload."""
        await self._up().put(key, payload)

    async def get(self, key: str) -> bytes | None:
        """Return a payload."""
        return await self._up().get(key)

    async def delete(self, key: str) -> None:
        """Remove a payload."""
        await self._up().delete(key)

    def keys(self, folder: str) -> AsyncIterator[str]:
        """Yield the keys of a folder."""
        return self._up().keys(folder)

    async def close(self) -> None:
        """Close what is behind it."""
        await self._store.close()

    def _up(self) -> MemoryStore:
        if self.is_out:
            raise StoreUnavailableError("it does not answer")
        return self._store
