"""What every adapter keeps: for each session of a framework a bank, a mirror and tools of ours."""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any, cast
from urllib.parse import quote

from ..bank import Bank, BlockingBank, bank_of
from ..errors import CoatcheckError, StoreUnavailableError
from ..mirror import Mirror, holds_pointer
from ..records import Limits
from ..tools import Failure, Tool, as_failure, retrieval_tools

SYSTEM_TEXT = "Large results come as pointers: pass one as an argument, or use retrieve_context."
"""What models are told, behind the instructions of the host."""

_KEPT = 256
"""Sessions that are kept ready. One that is not is made anew: nothing of it is lost."""


_ARRAY = {"type": "object", "properties": {"items": {"type": "array"}}}


def system_text(given: object) -> str:
    """Return the system text of a host with ours behind it; ours alone where it has none."""
    return f"{given}\n\n{SYSTEM_TEXT}" if given else SYSTEM_TEXT


def check_names(names: Iterable[object], own: Container[object]) -> None:
    """Check that no tool of a host has the name of one of ours.

    A framework calls one of the two, and an envelope tells a model to call ours.

    Args:
        names: Of the tools that are not ours.
        own: The names of ours.

    Raises:
        ValueError: One has.
    """
    for name in names:
        if name in own:
            raise ValueError(
                f"a tool is called {name!r}, the name of the one by which models read what"
                " Coatcheck keeps: call it another name"
            )


def failure_of(tool: str, error: Exception) -> Failure:
    """Return what a model reads of any error: of one that is not ours its type alone.

    Args:
        tool: Which was called, for the log.
        error: Whatever a store raised.
    """
    if isinstance(error, CoatcheckError | OSError):
        return as_failure(error)
    import logging  # a sixth of what the core takes to import, for what seldom happens

    logging.getLogger("coatcheck.adapters").error("a call of %s failed", tool, exc_info=error)
    # What it says may be no model's business.
    return as_failure(StoreUnavailableError(type(error).__name__))


class Session:
    """What serves the calls of one session.

    Args:
        bank: Where its results are kept.
        limits: When a result is offloaded; None takes the bank's.
        tools: Makes our own tools for a bank.
    """

    def __init__(
        self, bank: Bank, limits: Limits | None, tools: Callable[[Bank], Iterable[Tool]]
    ) -> None:
        self.bank = bank
        self.tools: Mapping[str, Tool] = {tool.name: _unfailing(tool) for tool in tools(bank)}
        # A tool of the host may have any other name, those of our other tools too.
        self.mirror = Mirror(bank, limits, own=self.tools)
        self._pointer: object = self.mirror.schema(_ARRAY)["properties"]["items"]["anyOf"][-1]

    async def arguments(
        self,
        tool: str,
        arguments: Mapping[str, object],
        schema: Mapping[str, Any] | None = None,
    ) -> Mapping[str, object] | Failure:
        """Return a call's arguments with what each pointer stands for, or why there is nothing.

        Whatever a store raises is such a reason: no run ends by it.

        Args:
            tool: Which is called, for the journal.
            arguments: By name; the same object comes back where there is no pointer to resolve.
            schema: The tool's own JSON schema, before it was widened.
        """
        given = {name: value for name, value in arguments.items() if not self._stays(name, schema)}
        if not holds_pointer(given):
            return arguments
        try:
            return {**arguments, **await self.mirror.resolve(given, schema)}
        except Exception as error:  # noqa: BLE001 - a stranger's store raises anything
            self.mirror.note(tool, (), given=(arguments,), is_error=True)
            return failure_of(tool, error)

    def _stays(self, name: str, schema: Mapping[str, Any] | None) -> bool:
        """Return whether a function that is mirrored already takes a pointer here and no JSON.

        It has a parameter there, as of a frame, for which only `mirror` finds the value.
        """
        node: object = (schema or {}).get("properties", {}).get(name)
        open_to: object = cast("Any", node).get("anyOf") if isinstance(node, Mapping) else None
        return open_to == [{}, self._pointer]


class Sessions:
    """The sessions of an adapter, each a scope of its own. Safe for any number of threads.

    Args:
        bank: Stays its owner's. Its scope serves whoever names no session.
        limits: When a result is offloaded; None takes the bank's.
        tools: Makes our own tools for a bank.

    >>> from coatcheck.stores import MemoryStore
    >>> sessions = Sessions(Bank(MemoryStore(), scope="shop"))
    >>> sessions.of().bank.scope, sessions.of("app", "ann/1").bank.scope
    ('shop', 'shop/session/app/ann%2F1')
    """

    def __init__(
        self,
        bank: Bank | BlockingBank,
        limits: Limits | None = None,
        tools: Callable[[Bank], Iterable[Tool]] = retrieval_tools,
    ) -> None:
        self._bank = bank_of(bank)
        self._limits = limits
        self._tools = tools
        self._own = Session(self._bank, limits, tools)
        self._kept: OrderedDict[tuple[str, ...], Session] = OrderedDict()
        self._lock = Lock()

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Our own tools by name, as they are listed: what they answer is for `of` to say."""
        return self._own.tools

    def of(self, *session: str | None) -> Session:
        """Return what serves a session.

        Args:
            session: Its id, with all that makes it one of a kind (as application, user, id).
                Nothing, or nothing but None, is the bank's own scope; an empty text is an id.
        """
        if all(part is None for part in session):
            return self._own
        parts = tuple(part or "" for part in session)
        with self._lock:
            kept = self._kept.get(parts)
            if kept is None:
                # No part can be written so that it ends where another begins.
                name = "/".join(quote(part, safe="", errors="surrogatepass") for part in parts)
                bank = self._bank.scoped(f"{self._bank.scope}/session/{name}")
                kept = self._kept[parts] = Session(bank, self._limits, self._tools)
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(parts)
        return kept


def _unfailing(tool: Tool) -> Tool:
    """Return a tool of ours that replies whatever happens: no run ends by it."""

    async def call(arguments: Mapping[str, Any] | str) -> str:
        try:
            return await tool.call(arguments)
        except Exception as error:  # noqa: BLE001 - a stranger's store raises anything
            return str(failure_of(tool.name, error))

    return replace(tool, call=call)
