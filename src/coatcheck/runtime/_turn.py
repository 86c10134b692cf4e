"""The tool calls of one turn: told, and run beside each other where the tools allow."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..content import dumps, visible
from ..errors import InvalidArgumentError
from ..tools import Failure, Tool
from ._context import RunContext
from ._events import ToolCallUpdate
from ._merged import Emit
from ._model import Call
from ._tools import not_found, parsed_arguments

_AT_ONCE = 8
_TOLD_CHARS = 100


class Turn:
    """Answers the calls of a step's model.

    Args:
        context: Of the run: to cancel it stops the calls.
        node_id: The step, as events name it.
        tools: What the step may call.
        emit: Tells of each call before it is made.
    """

    def __init__(
        self, context: RunContext, node_id: str, tools: Iterable[Tool], emit: Emit
    ) -> None:
        self._context = context
        self._node_id = node_id
        self._tools = {tool.name: tool for tool in tools}
        self._emit = emit

    async def replies(self, calls: Sequence[Call], *, closed: str | None = None) -> list[str]:
        """Return the reply to each call, in their order.

        Args:
            calls: Of one turn.
            closed: Why none of them is made, as the model is told; None makes them.
        """
        slots = asyncio.Semaphore(_AT_ONCE)

        async def reply(call: Call) -> str:
            async with slots:
                await self.tell(call)
                return await self._reply(call, closed)

        async def work() -> list[str]:
            replies: list[str] = []
            for group in self._groups(calls):
                async with asyncio.TaskGroup() as together:
                    tasks = [together.create_task(reply(call)) for call in group]
                replies += [task.result() for task in tasks]
            return replies

        if len(calls) == 1:
            return [await self._context.run(lambda: reply(calls[0]))]
        return await self._context.run(work)

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

    def _groups(self, calls: Iterable[Call]) -> Iterator[list[Call]]:
        """Yield the calls that may go on together, in order."""
        group: list[Call] = []
        for call in calls:
            tool = self._tools.get(call.name)
            if tool is None or tool.parallel:
                group.append(call)
                continue
            if group:
                yield group
            yield [call]
            group = []
        if group:
            yield group

    async def _reply(self, call: Call, closed: str | None) -> str:
        if closed is not None:
            return str(Failure("budget", closed, "Give what you have."))
        tool = self._tools.get(call.name)
        if tool is None:
            return not_found(call.name, self._tools.values())
        return await tool.call({} if call.arguments is None else call.arguments)


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
