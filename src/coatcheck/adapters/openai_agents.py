"""OpenAI Agents: pointers for all tools of an agent. Needs the `openai_agents` extra."""

import copy
from collections.abc import Iterable
from inspect import isawaitable
from typing import Any

from ..bank import Bank, BlockingBank
from ..records import Limits
from ._sessions import Session, Sessions, check_names, system_text

try:
    from agents import Agent, FunctionTool, Handoff, RunContextWrapper, Tool
    from agents import Session as Conversation

    from ._openai_tools import OwnTool, mirrored, own
except ImportError as error:
    message = (
        "coatcheck.adapters.openai_agents needs an extra: pip install 'coatcheck[openai_agents]'"
    )
    raise ImportError(message) from error


class CoatcheckAgents:
    """Makes of an agent one whose tools take pointers, and whose large results become pointers.

    Args:
        bank: Where results are kept; it stays its owner's. Each session has a scope of its own
            there, an agent without a session the bank's.
        limits: When a result is offloaded; None takes the bank's.

    >>> from coatcheck.stores import MemoryStore
    >>> agent = CoatcheckAgents(Bank(MemoryStore())).agent(Agent(name="Clerk"))
    >>> [tool.name for tool in agent.tools]
    ['retrieve_context']
    """

    def __init__(self, bank: Bank | BlockingBank, *, limits: Limits | None = None) -> None:
        self._sessions = Sessions(bank, limits)

    def agent(self, agent: Agent[Any], session: Conversation | str | None = None) -> Agent[Any]:
        """Return a copy of an agent, and of those it hands off to, with their tools mirrored.

        Those of MCP servers too. An interrupted run is resumed with the copy that it began with.

        Args:
            agent: It is not changed.
            session: The one that `Runner.run` gets, or its id.
        """
        return _Mirroring(self._of(session)).agent(agent)

    def tools(self, tools: Iterable[Tool], session: Conversation | str | None = None) -> list[Tool]:
        """Return tools mirrored, and behind them the one that reads what is banked.

        Args:
            tools: Function tools; others stay as they are.
            session: As for `agent`.
        """
        return _Mirroring(self._of(session)).tools(tools)

    def bank_for(self, session: Conversation | str | None = None) -> Bank:
        """Return the bank that the tools of a session use."""
        return self._of(session).bank

    def _of(self, session: Conversation | str | None) -> Session:
        if session is None or isinstance(session, str):
            return self._sessions.of(session)
        return self._sessions.of(session.session_id)


class _Mirroring:
    """Mirrors the agents of one session, each once: they may hand off to one another."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: list[tuple[Agent[Any], Agent[Any]]] = []

    def agent(self, agent: Agent[Any]) -> Agent[Any]:
        for given, known in self._known:
            if agent is given or agent is known:
                return known
        told, tools = _told(agent.instructions), self.tools(agent.tools)
        copied = agent.clone(instructions=told, tools=tools)
        # By its class, so that copies which the SDK makes of the copy do the same.
        copied.__class__ = self._class(type(agent))
        self._known.append((agent, copied))
        copied.handoffs = [
            self.agent(each) if isinstance(each, Agent) else self._handoff(each)
            for each in agent.handoffs
        ]
        return copied

    def tools(self, tools: Iterable[Tool]) -> list[Tool]:
        shown = [self._tool(tool) for tool in tools]
        names = {tool.name for tool in shown}
        return [
            *shown,
            *(own(ours) for name, ours in self._session.tools.items() if name not in names),
        ]

    def _tool(self, tool: Tool) -> Tool:
        if isinstance(tool, OwnTool):
            return tool
        check_names([tool.name], self._session.tools)
        return mirrored(self._session, tool) if isinstance(tool, FunctionTool) else tool

    def _class(self, kind: type[Agent[Any]]) -> type[Agent[Any]]:
        """Return a class of agents whose MCP servers' tools are mirrored as they are listed."""

        async def get_mcp_tools(agent: Agent[Any], context: RunContextWrapper[Any]) -> list[Tool]:
            return [self._tool(tool) for tool in await kind.get_mcp_tools(agent, context)]

        return type(kind.__name__, (kind,), {"get_mcp_tools": get_mcp_tools})

    def _handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        async def invoke(context: RunContextWrapper[Any], written: str) -> Agent[Any]:
            return self.agent(await handoff.on_invoke_handoff(context, written))

        copied = copy.copy(handoff)
        copied.on_invoke_handoff = invoke
        return copied


def _told(instructions: object) -> object:
    """Return instructions with ours behind them; what is computed is computed anew each time."""
    if not callable(instructions):
        return system_text(instructions)

    async def told(context: RunContextWrapper[Any], agent: Agent[Any]) -> object:
        said: object = instructions(context, agent)
        return _told(await said if isawaitable(said) else said)

    return told
