"""Agents of pydantic-ai: pointers for all their tools, by a capability. Needs its extra."""

from dataclasses import replace
from typing import Any

from ..bank import Bank, BlockingBank
from ..records import Limits
from ._history import History
from ._sessions import SYSTEM_TEXT, Session, Sessions

try:
    from pydantic_ai import ModelRetry, RunContext, ToolDefinition
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities import WrapToolExecuteHandler as Handler
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext
    from pydantic_ai.toolsets import FunctionToolset

    from ._pydantic_ai_results import ToolErrors, reduced, shown_error, shown_result
    from ._pydantic_ai_tools import Written, check_run, own_tool, resolved, unquoted, widened
except ImportError as error:
    message = "coatcheck.adapters.pydantic_ai needs an extra: pip install 'coatcheck[pydantic_ai]'"
    raise ImportError(message) from error

_Context = RunContext[Any]
_Args = dict[str, Any]


class CoatcheckCapability(AbstractCapability[Any]):
    """Lets every tool of an agent take pointers, and offloads their large results.

    Args:
        bank: Where results are kept; it stays its owner's. Each conversation has a scope of its
            own there.
        limits: When a result is offloaded; None takes the bank's.
        history_bytes: What tool results older than the last turns may take in a request; once they
            take more, they are sent as pointers. None sends all as they are.
        keep_turns: Results of so many last turns are sent as they are.

    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.models.test import TestModel
    >>> from coatcheck.stores import MemoryStore
    >>> agent = Agent(TestModel(), capabilities=[CoatcheckCapability(Bank(MemoryStore()))])
    """

    def __init__(
        self,
        bank: Bank | BlockingBank,
        *,
        limits: Limits | None = None,
        history_bytes: int | None = None,
        keep_turns: int = 3,
    ) -> None:
        self._sessions = Sessions(bank, limits)
        self._history = None
        if history_bytes is not None:
            self._history = History(history_bytes, keep_turns=keep_turns)

    def bank_for(self, conversation_id: str) -> Bank:
        """Return the bank that the tools of a conversation use."""
        return self._sessions.of(conversation_id).bank

    def get_instructions(self) -> str:
        """Tell the model of pointers."""
        return SYSTEM_TEXT

    def get_toolset(self) -> FunctionToolset[Any]:
        """Give the model our own tools."""
        own = [own_tool(self._sessions, tool) for tool in self._sessions.tools.values()]
        return FunctionToolset(own, id="coatcheck")

    async def before_run(self, ctx: _Context) -> None:
        """Refuse a run whose hooks may do no work of their own.

        Raises:
            UserError: The run is part of a durable workflow.
        """
        check_run(ctx)

    async def prepare_tools(
        self, ctx: _Context, tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        """Let pointers in where the schemas of tools ask for lists and objects."""
        mirror = self._session(ctx).mirror
        return [widened(mirror, each) for each in tool_defs]

    prepare_output_tools = prepare_tools

    async def before_model_request(
        self, ctx: _Context, request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send old results as pointers, where the host asked for that."""
        if self._history is None:
            return request_context
        sent = await reduced(self._history, self._session(ctx), request_context.messages)
        return replace(request_context, messages=sent)

    async def before_tool_validate(
        self, ctx: _Context, *, tool_def: ToolDefinition, args: Written, **_: object
    ) -> Written:
        """Put what pointers stand for in their place; the history keeps the pointers."""
        # Unlike `ModelRetry`, `ToolFailed` never ends the run.
        return await resolved(self._session(ctx), tool_def, args, ToolFailed)

    async def on_tool_validate_error(
        self, ctx: _Context, *, call: ToolCallPart, args: Written, error: Exception, **_: object
    ) -> _Args:
        """Quote nothing of what a pointer stands for, where that does not fit."""
        raise unquoted(self._session(ctx), error, ToolFailed, call, args)

    async def after_tool_execute(
        self, ctx: _Context, *, call: ToolCallPart, result: object, **_: object
    ) -> object:
        """Show a large result as an envelope."""
        return await shown_result(self._session(ctx), call, result)

    async def wrap_tool_execute(
        self, ctx: _Context, *, call: ToolCallPart, args: _Args, handler: Handler, **_: object
    ) -> object:
        """Show a large error as an envelope."""
        try:
            return await handler(args)
        except ToolErrors as error:
            raise await shown_error(self._session(ctx), call, error) from error.__cause__

    async def before_output_validate(
        self, ctx: _Context, *, output_context: OutputContext, output: Written
    ) -> Written:
        """Put what pointers stand for in their place, in a final output."""
        if output_context.tool_def is None or ctx.partial_output:
            return output
        return await resolved(self._session(ctx), output_context.tool_def, output, ModelRetry)

    async def on_output_validate_error(
        self, ctx: _Context, *, output_context: OutputContext, output: object, error: Exception
    ) -> object:
        """Quote nothing of what a pointer stands for, where that does not fit."""
        call = output_context.tool_call
        raise unquoted(self._session(ctx), error, ModelRetry, call, output)

    def _session(self, ctx: _Context) -> Session:
        return self._sessions.of(ctx.conversation_id)
