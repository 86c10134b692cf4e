"""The planner: a talk with a model that ends with a plan which can be run, or says why not."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Unpack

from ..errors import ModelError
from ._context import RunContext
from ._draft import NODE, REFUSALS, Draft
from ._events import Chunk, Event, PlanningUpdate
from ._loop import asked
from ._means import Means, StepOptions, at_least
from ._merged import Emit, merged_run
from ._model import Conversation, Reply
from ._plan import TaskPlan
from ._plan_prompts import CREATE_TASK, REMINDER, planning_message, planning_prompt
from ._prompts import layered
from ._tools import StepTool, step_tools
from ._turn import Turn

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_QUOTED_CHARS = 200


class Planner:
    """Has a model make a plan, task by task. What cannot be run is refused, and told to it.

    Args:
        objective: What is wanted.
        context: Of the run.
        model: A name as ``openai:gpt-5``, or a model of pydantic-ai.
        inputs: What steps and tasks may depend on; the model is told their keys.
        output_schema: JSON schema of the result, for the last step to follow.
        single_task: Whether the plan has one task.
        planning_tools: What the planner itself may call. They are mirrored: they take and give
            pointers, which it writes into the plan.
        max_steps: Longest chain of steps in a task.
        max_calls: Most requests to the model.
        options: See `StepOptions`: `tools` are those of the steps, which the model is told of.

    Raises:
        ImportError: The `agent` extra, or the package of the provider, is missing.
        ValueError: The model is unknown or has no key, two tools have one name, a number is
            outside its range.
        TypeError: A tool is none.
    """

    def __init__(
        self,
        *,
        objective: str,
        context: RunContext,
        model: "Model | str",
        inputs: Mapping[str, object] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        single_task: bool = False,
        planning_tools: Sequence[StepTool] = (),
        max_steps: int = 50,
        max_calls: int = 100,
        **options: Unpack[StepOptions],
    ) -> None:
        at_least("max_steps", max_steps)
        at_least("max_calls", max_calls)
        self.plan: TaskPlan | None = None
        """What came of it; None before, and where nothing did."""
        self.error: str | None = None
        """Why there is no plan."""
        self._objective = objective
        self._inputs = dict(inputs or {})
        self._schema = output_schema
        self._is_single = single_task
        self._max_steps = max_steps
        self._max_calls = max_calls
        self._means = Means.of(context, model, **options)
        self._looks = (
            step_tools(planning_tools, context, options.get("limits")) if planning_tools else []
        )

    async def execute(self) -> AsyncGenerator[Event, None]:
        """Plan, and yield what goes on. Then `plan` is there, or `error` says why it is not.

        Raises:
            RunCancelledError: The run was cancelled.
            StoreError: Memory could not be read.
        """
        async with aclosing(merged_run(self._means.context, self._run)) as events:
            async for event in events:
                yield event

    async def _run(self, emit: Emit) -> None:
        await emit(PlanningUpdate(phase="initialization", status="started"))
        draft = Draft(
            emit,
            self._means.context.memory,
            inputs=self._inputs,
            tools=self._means.tool_names,
            max_steps=self._max_steps,
        )
        await emit(PlanningUpdate(phase="generation", status="running"))
        try:
            self.error = await self._drafted(draft, emit)
        except ModelError as error:
            self.error = str(error)
        if self.error is not None:
            await emit(Chunk(node_id=NODE, content=f"Failed to plan: {self.error}", done=True))
            await emit(PlanningUpdate(phase="complete", status="failed", content=self.error))
            return
        self.plan = draft.plan
        await emit(PlanningUpdate(phase="complete", status="success", content=draft.plan.title))

    async def _drafted(self, draft: Draft, emit: Emit) -> str | None:
        """Talk until the draft is finished. Return why it will never be, None where it is."""
        create = CREATE_TASK if self._is_single else None
        tools = [*self._looks, *draft.tools(create)]
        choice = CREATE_TASK.name if self._is_single and not self._looks else "required"
        means = self._means
        turn = Turn(means.context, NODE, tools, emit, means.mirror.limits)
        talk = self._talk(tools)
        silent = 0

        async def say(text: str) -> None:
            await emit(Chunk(node_id=NODE, content=text))

        for _ in range(self._max_calls):
            reply = await asked(means.context, talk, choice=choice, tell=say)
            if reply.text:
                await emit(Chunk(node_id=NODE, content="", done=True))
            silent = 0 if reply.calls else silent + 1
            if silent == REFUSALS:
                return _said(reply)
            for call, text in zip(reply.calls, await turn.replies(reply.calls), strict=True):
                talk.answer(call, text)
            if draft.is_finished or draft.given_up is not None:
                return None if draft.is_finished else draft.given_up
            if reply.tokens >= means.max_token_limit:
                return f"its budget of {means.max_token_limit:,} tokens is used up"
            if not reply.calls:
                talk.say(REMINDER)
        return f"it was not finished in {self._max_calls} requests"

    def _talk(self, tools: Sequence[Any]) -> Conversation:
        means = self._means
        prompt = planning_prompt(is_single=self._is_single, may_look=bool(self._looks))
        return Conversation(
            means.model,
            system=layered(means.system_prompt, prompt),
            user=planning_message(
                self._objective,
                tools=means.all_tools[: means.given],
                inputs=self._inputs,
                schema=self._schema,
            ),
            tools=tools,
            settings=means.model_settings,
            streams=means.stream,
        )


def _said(reply: Reply) -> str:
    text = reply.text.strip()
    said = f"; it said {text[:_QUOTED_CHARS]!r}" if text else ""
    return f"the model called no tool {REFUSALS} times in a row{said}"
