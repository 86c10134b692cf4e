"""The tool calls of one turn: told, and run beside each other where the tools allow."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..content import dumps, visible
from ..errors import InvalidArgumentError
from ..mirror import Mirror, ModelCall, ToolResult, calling
from ..records import Limits
from ..tools import Failure, Tool
from ._context import RunContext
from ._events import ToolCallUpdate
from ._merged import Emit
from ._model import Call
from ._tools import MirroredStepTool, as_text, not_found, parsed_arguments

_Numbered = tuple[Call, int]
"""A call, and how many the step had before it."""
_AT_ONCE = 8
_TOLD_CHARS = 100


class Turn:
    """Answers the calls of a step's model.

    Args:
        context: Of the run: to cancel it stops the calls.
        node_id: The step, as events name it.
        tools: What the step may call.
        emit: Tells of each call before it is made.
        limits: How much the replies of one turn may take; None takes those of the bank.
    """

    def __init__(
        self,
        context: RunContext,
        node_id: str,
        tools: Iterable[Tool],
        emit: Emit,
        limits: Limits | None = None,
    ) -> None:
        self._context = context
        self._node_id = node_id
        self._tools = {tool.name: tool for tool in tools}
        self._emit = emit
        self._made = 0
        self._limits = context.bank.limits if limits is None else limits

    async def replies(self, calls: Sequence[Call], *, closed: str | None = None) -> list[str]:
        """Return the reply to each call, in their order.

        Args:
            calls: Of one turn.
            closed: Why none of them is made, as the model is told; None makes them.
        """
        if not calls:
            self._context.check()
            return []
        slots = asyncio.Semaphore(_AT_ONCE)
        numbered = [(call, self._made + at) for at, call in enumerate(calls)]
        self._made += len(calls)

        async def answer(call: Call, number: int) -> ToolResult:
            async with slots:
                await self.tell(call)
                return await self._result(call, self._key(number), closed)

        async def work() -> list[str]:
            results: list[ToolResult] = []
            for group in self._groups(numbered):
                async with asyncio.TaskGroup() as together:
                    tasks = [together.create_task(answer(*each)) for each in group]
                results += [task.result() for task in tasks]
            return await self._texts(results)

        async def work_alone() -> list[str]:
            return await self._texts([await answer(*numbered[0])])

        return await self._context.run(work_alone if len(calls) == 1 else work)

    def _key(self, number: int) -> str:
        """Return what names a call in the run, also when the step is run again.

        By its place among the calls of the step: a provider gives a replay other ids.
        """
        run = self._context.bank.current_run or self._context.run_name
        return f"{run}\n{self._node_id}\n{number}"

    async def tell(self, call: Call) -> None:
        """Tell whoever looks on of a call."""
        try:
            arguments = parsed_arguments(call.arguments)
        except InvalidArgumentError:
            arguments = {}
        await self._emit(
            ToolCallUpdate(
                node_id=self._node_id,
                tool_call_id=call.id,
                name=call.name,
                args=arguments,
                message=_message(call.name, arguments),
            )
        )

    def _groups(self, calls: Iterable[_Numbered]) -> Iterator[list[_Numbered]]:
        """Yield the calls that may go on together, in order."""
        group: list[_Numbered] = []
        for each in calls:
            tool = self._tools.get(each[0].name)
            if tool is None or tool.parallel:
                group.append(each)
                continue
            if group:
                yield group
            yield [each]
            group = []
        if group:
            yield group

    async def _result(self, call: Call, key: str, closed: str | None) -> ToolResult:
        """Return what a call gives, as it is shown where it stands alone."""
        if closed is not None:
            failure = Failure("budget", closed, "Give what you have.")
            return ToolResult(str(failure), call.name, key, is_shown=True, is_noted=True)
        tool = self._tools.get(call.name)
        arguments: Mapping[str, Any] | str = {} if call.arguments is None else call.arguments
        made = ModelCall(key, call.name, puts_off=self._limits.turn_bytes is not None)
        with calling(made):
            if tool is None:
                value: object = not_found(call.name, self._tools.values())
            elif isinstance(tool, MirroredStepTool):
                value = await tool.shown(arguments)
            else:
                value = await tool.call(arguments)
        is_error = isinstance(value, Failure)
        value = str(value) if isinstance(value, Failure) else value
        return ToolResult(
            value, call.name, key, is_error, made.given, is_shown=True, is_noted=made.is_noted
        )

    async def _texts(self, results: Sequence[ToolResult]) -> list[str]:
        """Return the replies of a turn, within the bytes that one may take."""
        if self._limits.turn_bytes is None:
            return [as_text(result.value) for result in results]
        ours = [name for name, tool in self._tools.items() if not _is_mirrored(tool)]
        mirror = Mirror(self._context.bank, self._limits, own=["retrieve_context", *ours])
        return [as_text(shown) for shown in await mirror.offload_turn(results)]


def _is_mirrored(tool: Tool) -> bool:
    return isinstance(tool, MirroredStepTool)


def _message(name: str, arguments: Mapping[str, Any]) -> str:
    if name == "memory_list":
        filters = ", ".join(f"{word} {_short(value)}" for word, value in arguments.items())
        return "Listing memory" + (f": {filters}" if filters else "")
    if name == "memory_read":
        return f"Reading memory: {_short(arguments.get('keys'))}"
    if name == "memory_write":
        return f"Writing memory: {_short(arguments.get('key'))}"
    return f"Calling {name[:_TOLD_CHARS]}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else dumps(value).decode("utf-8", "replace")
    return visible(text if len(text) <= _TOLD_CHARS else f"{text[:_TOLD_CHARS]}…")
