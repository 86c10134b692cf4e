"""The talk with a step's model: asks, has its calls answered, and keeps to the step's bounds."""

import re
from collections.abc import Sequence

from ..errors import ModelError
from ._context import RunContext
from ._events import Chunk, LogUpdate
from ._means import Means
from ._merged import Emit
from ._model import Call, Conversation, Reply, Told
from ._plan import Step, Task
from ._prompts import conclusion, system_prompt, user_message
from ._result import Result, finished_result, text_result
from ._schema import output_schema
from ._tools import FINISH, FinishTool
from ._turn import Turn

_REFUSALS = 3
"""Results refused in a row that end a step."""
_QUOTED_CHARS = 200
_REASON_CHARS = 500
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class StepFailedError(Exception):
    """A step failed. The text says why."""


async def asked(
    context: RunContext, talk: Conversation, *, choice: str | None = None, tell: Told | None = None
) -> Reply:
    """Return what a model says next, in one of the run's slots.

    Raises:
        ModelError: It gave no reply.
        RunCancelledError: The run was cancelled.
    """

    async def ask() -> Reply:
        async with context.engine.slot():
            return await talk.ask(choice=choice, tell=tell)

    await context.renew()
    reply = await context.run(ask)
    await context.renew()
    return reply


class Loop:
    """One talk with a model, from the first message of a step to its result.

    Args:
        means: What the step is run with.
        task: What it belongs to.
        step: What is to be done.
        emit: Tells what goes on.
        is_final: Whether the result is that of the task.
        max_iterations: Most requests to the model.
    """

    def __init__(
        self,
        means: Means,
        task: Task,
        step: Step,
        emit: Emit,
        *,
        is_final: bool,
        max_iterations: int,
    ) -> None:
        self._means = means
        self._task = task
        self._step = step
        self._emit = emit
        self._is_final = is_final
        self._max_iterations = max_iterations
        self._schema = output_schema(
            step.output_schema, "task result" if is_final else "step result"
        )
        self._tools = means.tools(step.tools)
        self._turn = Turn(means.context, step.id, self._tools, emit, means.mirror.limits)
        self._is_concluding = False
        self._refusals = 0

    async def result(self, upstream: Sequence[str]) -> Result:
        """Return what the step ends with.

        Args:
            upstream: Keys of entries that it builds on.

        Raises:
            StepFailedError: It does not come to a result.
            RunCancelledError: The run was cancelled.
        """
        if self._schema is not None and self._schema.problem is not None:
            await self._emit(schema_warning(self._step, self._schema.problem))
        talk = await self._talk(upstream)
        for number in range(1, self._max_iterations + 1):
            reply = await self._asked(talk)
            if not reply.calls:
                return await self._ended(reply, number)
            result = await self._answered(talk, reply)
            if result is not None:
                return result
            await self._watch_budget(talk, reply.tokens)
        end = "an answer" if self._schema is None else "calling finish_step"
        raise StepFailedError(f"exceeded {self._max_iterations} iterations without {end}")

    async def _talk(self, upstream: Sequence[str]) -> Conversation:
        means, step, schema = self._means, self._step, self._schema
        finish = [] if schema is None else [FinishTool(schema.parameters)]
        return Conversation(
            means.model,
            system=system_prompt(
                step.instructions,
                preamble=means.system_prompt,
                schema=None if schema is None else schema.shown,
                is_final=self._is_final,
                at=means.now(),
            ),
            user=await user_message(step.instructions, means.context.memory, upstream),
            tools=[*(means.offers[tool.name] for tool in self._tools), *finish],
            settings=means.model_settings,
            streams=means.stream,
        )

    async def _asked(self, talk: Conversation) -> Reply:
        choice = None
        if self._is_concluding:
            choice = "none" if self._schema is None else FINISH
        try:
            reply = await asked(self._means.context, talk, choice=choice, tell=self._say)
        except ModelError as error:
            said = f"the model {error.model!r} failed: {error.reason[:_REASON_CHARS]}"
            raise StepFailedError(said) from error
        if reply.text:
            await self._emit(Chunk(node_id=self._step.id, content="", done=True))
        return reply

    async def _say(self, text: str) -> None:
        await self._emit(Chunk(node_id=self._step.id, content=text))

    async def _ended(self, reply: Reply, number: int) -> Result:
        """Return the result of a step whose model calls nothing more."""
        text = _THOUGHT.sub("", reply.text).strip()
        if self._schema is None and text:
            return await text_result(text, self._means)
        if self._schema is None:
            raise StepFailedError("the model gave neither text nor a tool call")
        turns = "1 turn" if number == 1 else f"{number} turns"
        said = f"{text[:_QUOTED_CHARS]!r}" if text else "nothing"
        raise StepFailedError(f"the model ended after {turns} without finish_step; it said {said}")

    async def _answered(self, talk: Conversation, reply: Reply) -> Result | None:
        """Answer the calls of a turn; return the result, where one of them gives it.

        `finish_step` comes after the others: what they do is done, and memory has it.
        """
        finishing = [call for call in reply.calls if self._finishes(call)]
        others = [call for call in reply.calls if not self._finishes(call)]
        closed = None
        if self._is_concluding:
            closed = conclusion(self._means.max_token_limit, has_schema=self._schema is not None)
        for call, text in zip(others, await self._turn.replies(others, closed=closed), strict=True):
            talk.answer(call, text, is_refused=closed is not None)
        if not finishing:
            self._refusals = 0
        for call in finishing:
            result = await self._finished(call, talk)
            if result is not None:
                return result
        return None

    async def _finished(self, call: Call, talk: Conversation) -> Result | None:
        await self._turn.tell(call)
        if self._schema is None:
            return None
        outcome = await finished_result(call, self._schema, self._means)
        if isinstance(outcome, Result):
            if outcome.error is not None:
                raise StepFailedError(f"the step reported: {outcome.error}")
            return outcome
        self._refusals += 1
        if self._refusals == _REFUSALS:
            raise StepFailedError(
                f"finish_step was refused {_REFUSALS} times in a row: {outcome.reason}"
            )
        talk.answer(call, outcome.reply, is_refused=True)
        return None

    def _finishes(self, call: Call) -> bool:
        return self._schema is not None and call.name == FINISH

    async def _watch_budget(self, talk: Conversation, tokens: int) -> None:
        """End the step that has used its tokens; of one that soon will, leave only its end."""
        limit = self._means.max_token_limit
        if self._is_concluding:
            if tokens >= limit:
                raise StepFailedError(
                    f"the token budget is gone: {tokens:,} of {limit:,} tokens without a result"
                )
        elif tokens >= limit * self._means.conclusion_at:
            self._is_concluding = True
            talk.say(conclusion(limit, has_schema=self._schema is not None))
            telling = self._means.telling
            await self._emit(
                telling.task_update("entered_conclusion_stage", self._task, self._step)
            )


def schema_warning(step: Step, problem: str) -> LogUpdate:
    """Return the event that tells of a schema which counts as none."""
    return LogUpdate(
        node_id=step.id,
        content=f"the output schema of step {step.id!r} counts as none: {problem}",
        severity="warning",
    )
