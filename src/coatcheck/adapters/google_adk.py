"""ADK agents: pointers for all tools of a runner, by a plugin. Needs the `google_adk` extra."""

import operator
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakKeyDictionary

from ..bank import Bank, BlockingBank
from ..mirror import holds_pointer
from ..records import Limits
from ..tools import Failure
from ._sessions import SYSTEM_TEXT, Session, Sessions, check_names

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions.session import Session as AdkSession
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.computer_use.computer_use_tool import ComputerUseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types

    from ._google_adk_results import shown_part, shown_result
    from ._google_adk_tools import (
        OwnTool,
        misfit_of,
        open_to_pointers,
        parameters_of,
        takes_functions,
    )
except ImportError as error:
    message = "coatcheck.adapters.google_adk needs an extra: pip install 'coatcheck[google_adk]'"
    raise ImportError(message) from error

_caller: ContextVar[tuple[object, Session] | None] = ContextVar("_caller", default=None)
"""A plugin, and the session whose agent calls, as a tool, the one that runs now."""


class CoatcheckPlugin(BasePlugin):
    """Lets every tool of a runner's agents take pointers, and offloads their large results.

    Args:
        bank: Where results are kept; it stays its owner's. Each session of a user of an app has
            a scope of its own there.
        limits: When a result is offloaded; None takes the bank's.
        name: Of the plugin, one of a kind in its runner.

    >>> from google.adk.agents import Agent
    >>> from google.adk.apps import App
    >>> from coatcheck.stores import MemoryStore
    >>> plugin = CoatcheckPlugin(Bank(MemoryStore()))
    >>> app = App(name="shop", root_agent=Agent(name="clerk"), plugins=[plugin])
    """

    def __init__(
        self, bank: Bank | BlockingBank, *, limits: Limits | None = None, name: str = "coatcheck"
    ) -> None:
        super().__init__(name=name)
        self._sessions = Sessions(bank, limits)
        self._calls = WeakKeyDictionary[ToolContext, tuple[Session, object]]()
        self.tools = [OwnTool(tool, self._session) for tool in self._sessions.tools.values()]
        """Our own, as ADK's, for live agents: they take none of a plugin. Others are given them."""

    def bank_for(self, session_id: str, *, app_name: str, user_id: str) -> Bank:
        """Return the bank that the tools of a session use."""
        return self._sessions.of(app_name, user_id, session_id).bank

    async def before_model_callback(
        self,
        *,
        callback_context: CallbackContext,  # noqa: ARG002 - named so by ADK
        llm_request: LlmRequest,
    ) -> None:
        """Tell the model of pointers, and list our own tools behind those of the agent."""
        config, known = llm_request.config, llm_request.tools_dict
        others = [name for name in known if not isinstance(known[name], OwnTool)]
        check_names(others, self._sessions.tools)
        if not takes_functions(config):
            return
        llm_request.append_tools([t for t in self.tools if t.name not in known])
        # A live agent has one request for all turns.
        if SYSTEM_TEXT not in str(config.system_instruction):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            llm_request.append_instructions([SYSTEM_TEXT])
        open_to_pointers(config, known, self._sessions.of().mirror)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Put what pointers stand for in their place; answer for the tool where that fails.

        These arguments are a copy: those that ADK keeps hold the pointers.
        """
        if isinstance(tool, OwnTool):
            return None
        session, given = self._session(tool_context), dict(tool_args)
        # ADK gives an agent that is a tool another session. Each call is a task, where this ends.
        _caller.set((self, session) if isinstance(tool, AgentTool) else None)
        self._calls[tool_context] = session, given
        if not holds_pointer(given):
            return None
        found = await session.arguments(tool.name, given, parameters_of(tool))
        failure = found if isinstance(found, Failure) else misfit_of(tool, given, found)
        if failure is not None:
            self._calls[tool_context] = session, failure
            return dict(failure.to_wire())
        tool_args.update(cast("Mapping[str, object]", found))
        return None

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: Any,  # noqa: ANN401 - whatever the tool returned
    ) -> dict[str, Any] | None:
        """Return what to show of a result, None where that is the result itself."""
        known = self._calls.pop(tool_context, None)
        session, given = known or (self._session(tool_context), tool_args)
        if isinstance(tool, OwnTool) or isinstance(given, Failure):
            return None
        if isinstance(tool, ComputerUseTool):  # of which ADK takes the screen
            return None
        call_id = tool_context.function_call_id
        return await shown_result(session.mirror, tool.name, result, call_id, [given])

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Offload what a host sends as the late result of a long-running tool."""
        mirror = self._sessions.of(*_ids(invocation_context.session)).mirror
        sent = user_message.parts or []
        parts = [await shown_part(mirror, part) for part in sent]
        if all(map(operator.is_, parts, sent)):
            return None
        return user_message.model_copy(update={"parts": parts})

    def _session(self, context: ToolContext) -> Session:
        plugin, session = _caller.get() or (None, None)
        if plugin is self and session is not None:
            return session
        return self._sessions.of(*_ids(context.session))


def _ids(session: AdkSession) -> tuple[str, str, str]:
    return session.app_name, session.user_id, session.id
