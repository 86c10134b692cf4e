"""The tool runner of the Anthropic SDK: pointers for its tools. Needs the `anthropic` extra."""

from collections.abc import Iterable
from typing import Any

from ..bank import Bank, BlockingBank
from ..records import Limits
from ._sessions import SYSTEM_TEXT, Sessions, check_names, system_text

try:
    from anthropic.lib.tools import BetaToolLike
    from anthropic.types.beta import BetaTextBlockParam

    from ._anthropic_tools import ASYNC, mirrored, name_of, own
except ImportError as error:
    message = "coatcheck.adapters.anthropic needs an extra: pip install 'coatcheck[anthropic]'"
    raise ImportError(message) from error


class CoatcheckTools:
    """Makes of tools for `tool_runner` such that take pointers, and show large results as one.

    Args:
        bank: Where results are kept; it stays its owner's. Each session has a scope of its own
            there, tools without a session the bank's.
        limits: When a result is offloaded; None takes the bank's.

    >>> from coatcheck.stores import MemoryStore
    >>> tools = CoatcheckTools(Bank(MemoryStore()))
    >>> [tool.name for tool in tools.tools([])]
    ['retrieve_context']
    >>> tools.system("Be brief.").startswith("Be brief.")
    True
    """

    def __init__(self, bank: Bank | BlockingBank, *, limits: Limits | None = None) -> None:
        self._sessions = Sessions(bank, limits)

    def tools(
        self,
        tools: Iterable[BetaToolLike],
        session: str | None = None,
        *,
        is_async: bool | None = None,
    ) -> list[Any]:
        """Return tools mirrored, and behind them the one that reads what is banked.

        Args:
            tools: As for `tool_runner`. Definitions that the API runs, and toolsets, stay as
                they are.
            session: The id of the conversation: no other reads its pointers.
            is_async: Whether they are for `AsyncAnthropic`; None says what the tools are.
        """
        kept, given = self._sessions.of(session), list(tools)
        check_names(map(name_of, given), kept.tools)
        if is_async is None:
            is_async = any(isinstance(tool, ASYNC) for tool in given)
        ours = [own(tool, is_async=is_async) for tool in kept.tools.values()]
        return [*(mirrored(kept, tool) for tool in given), *ours]

    def system(
        self, system: str | Iterable[BetaTextBlockParam] | None = None
    ) -> str | list[BetaTextBlockParam]:
        """Return a system text, or its blocks, with ours behind it: the same bytes each time."""
        if system is None or isinstance(system, str):
            return system_text(system)
        # Behind what the host lets be cached.
        return [*system, {"type": "text", "text": SYSTEM_TEXT}]

    def bank_for(self, session: str | None = None) -> Bank:
        """Return the bank that the tools of a session use."""
        return self._sessions.of(session).bank
