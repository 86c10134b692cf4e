"""The agent: has an objective planned, and the plan carried out, and gives what came of it."""

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from ..errors import ModelError, NoPlanError
from ..memory import memory_keys
from ..records import Limits
from ..tools import artifact_tools, memory_tools
from ._checkpoint import resumed_name
from ._context import RunContext
from ._events import Chunk, Event, LogUpdate
from ._loop import asked
from ._means import StepOptions, at_least
from ._merged import Emit, merged_run
from ._model import Conversation, known_as, opened_model
from ._parallel import ParallelTaskExecutor
from ._plan import Task, TaskPlan, plan_hash
from ._planner import Planner
from ._prompts import layered
from ._task import TaskExecutor
from ._tools import StepTool

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_READ_KEYS = 50
"""So many of the longest ids `memory_read` takes in one call."""

_SYNTHESIS = """\
You are given the results of the tasks of a plan, as JSON. Bring them together into one answer to \
the objective: whole, without preamble, and with nothing that the results do not say. What is too \
long to show stands as its pointer (`art:…`): name that as it is.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsConfig:
    """What an agent's tools have to do with artifacts.

    Args:
        enabled: True also gives its models `storeArtifact`, `getArtifact` and `listArtifacts`;
            False offloads nothing; None, the default, offloads, without the three.
        max_tool_output_bytes: From this size on a result is offloaded; None takes the limits'.
        preview_chars: Longest preview in an envelope; None takes the limits'.

    >>> ArtifactsConfig(enabled=True, max_tool_output_bytes=1_024).limits(Limits()).inline_bytes
    1024
    """

    enabled: bool | None = None
    max_tool_output_bytes: int | None = None
    preview_chars: int | None = None

    def limits(self, limits: Limits) -> Limits:
        """Return `limits` with what is said here in their place.

        Raises:
            ValueError, TypeError: A number is outside its range, or is none.
        """
        if self.enabled is False:
            return replace(limits, inline_bytes=sys.maxsize, per_tool={}, turn_bytes=None)
        inline_bytes, preview_chars = self.max_tool_output_bytes, self.preview_chars
        return replace(
            limits,
            inline_bytes=limits.inline_bytes if inline_bytes is None else inline_bytes,
            preview_chars=limits.preview_chars if preview_chars is None else preview_chars,
        )


class Agent:
    """Reaches an objective: plans it, runs the plan, and gives the result.

    The result of a plan of one task is that of the task. Of several it is what one more request
    makes of all results; with an `output_schema`, the last task's, which follows it.

    Args:
        objective: What is wanted.
        model: A name as ``openai:gpt-5``, or a model of pydantic-ai.
        name: For whoever looks on.
        task: What is to be done, where that needs no planning.
        plan: The same, of several tasks.
        inputs: Are put into memory under ``input:KEY``, unless something is there.
        output_schema: JSON schema of the result: that of the last step.
        planning_tools: What the planner itself may call; see `Planner`.
        max_steps: Longest chain of steps in a task that is planned, or given as `task`.
        max_step_iterations: Most requests to the model in one step.
        max_concurrent_agents: How many tasks go on at once.
        resumable: As for `ParallelTaskExecutor`; only where there is a `plan`, as a plan that
            is made anew is another one.
        artifacts: When results of tools are offloaded, and whether models may keep artifacts.
        options: See `StepOptions`.

    Raises:
        ImportError: The `agent` extra, or the package of the provider, is missing.
        ValueError: The model is unknown or has no key, a number is outside its range, both a
            task and a plan are given, or a run without a plan is to be resumable.
    """

    def __init__(
        self,
        *,
        objective: str,
        model: "Model | str",
        name: str = "agent",
        task: Task | None = None,
        plan: TaskPlan | None = None,
        inputs: Mapping[str, object] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        planning_tools: Sequence[StepTool] = (),
        max_steps: int = 10,
        max_step_iterations: int = 15,
        max_concurrent_agents: int = 8,
        resumable: bool = False,
        artifacts: ArtifactsConfig | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        at_least("max_steps", max_steps)
        at_least("max_step_iterations", max_step_iterations)
        at_least("max_concurrent_agents", max_concurrent_agents)
        if task is not None and plan is not None:
            raise ValueError("an agent takes a task or a plan, not both")
        if resumable and plan is None:
            raise ValueError("a run can be resumed only with a plan: give the agent one")
        self.objective = objective
        self.name = name
        self.plan = plan
        """What is carried out; None until it is planned."""
        self._given_plan = plan
        self._model = opened_model(model)
        self._task = task
        self._inputs = dict(inputs or {})
        self._schema = output_schema
        self._planning_tools = tuple(planning_tools)
        self._max_steps = max_steps
        self._max_step_iterations = max_step_iterations
        self._max_concurrent_agents = max_concurrent_agents
        self._resumable = resumable
        self._artifacts = artifacts or ArtifactsConfig()
        self._options = options
        self._results: object = None

    async def execute(self, context: RunContext | None = None) -> AsyncGenerator[Event, None]:
        """Plan and run, and yield what goes on. Close the generator to stop it.

        Args:
            context: Of the run; None takes one that ends with the process.

        Raises:
            NoPlanError: The planner came to no plan.
            InvalidPlanError: The task or plan that was given cannot be run.
            RunCancelledError: The run was cancelled.
            StoreError: A result could not be kept.
            ValueError, TypeError: Two tools have one name, or a tool is none.
        """
        self._results = None
        context = RunContext() if context is None else context
        options = self._with_artifacts(context)
        if self._task is None:
            run = self._run_plan(context, options)
        else:
            run = self._run_task(self._task, context, options)

        async def carry_out(emit: Emit) -> None:
            async with aclosing(run) as events:
                async for event in events:
                    await emit(event)

        # One run, from the first request of the planner to the answer.
        async with aclosing(merged_run(context, carry_out, self._resumed_name())) as events:
            async for event in events:
                yield event

    def _resumed_name(self) -> str | None:
        """Return the name of the run, the same when it is resumed; None where it never is."""
        plan = self._given_plan
        if plan is None or not self._resumable:
            return None
        self._impose_schema(plan)
        prompt = self._options.get("system_prompt")
        return resumed_name(plan_hash(plan, model=known_as(self._model), system_prompt=prompt))

    def get_results(self) -> object:
        """Return the result of the last run; None before its end, and where it has none."""
        return self._results

    def _with_artifacts(self, context: RunContext) -> StepOptions:
        options = self._options.copy()
        limits = options.get("limits") or context.bank.limits
        options["limits"] = self._artifacts.limits(limits)
        if self._artifacts.enabled:
            options["tools"] = [*options.get("tools", ()), *artifact_tools(context.bank)]
        return options

    async def _run_task(
        self, task: Task, context: RunContext, options: StepOptions
    ) -> AsyncGenerator[Event, None]:
        self.plan = TaskPlan(title=task.title, tasks=[task])
        self._impose_schema(self.plan)
        executor = TaskExecutor(
            task=task,
            context=context,
            model=self._model,
            inputs=self._inputs,
            max_steps=self._max_steps,
            max_step_iterations=self._max_step_iterations,
            **options,
        )
        async with aclosing(executor.execute()) as events:
            async for event in events:
                yield event
        self._results = await executor.get_result()

    async def _run_plan(
        self, context: RunContext, options: StepOptions
    ) -> AsyncGenerator[Event, None]:
        plan = self._given_plan
        if plan is None:
            planner = self._planner(context, options)
            async with aclosing(planner.execute()) as planning:
                async for event in planning:
                    yield event
            if planner.plan is None:
                raise NoPlanError(planner.error or "the planner was stopped")
            plan = planner.plan
        self.plan = plan
        self._impose_schema(plan)
        executor = ParallelTaskExecutor(
            plan=plan,
            context=context,
            model=self._model,
            inputs=self._inputs,
            max_step_iterations=self._max_step_iterations,
            max_concurrent_agents=self._max_concurrent_agents,
            resumable=self._resumable,
            **options,
        )
        async with aclosing(executor.execute()) as events:
            async for event in events:
                yield event
        results = [memory_keys.task(task.id) for task in plan.tasks if task.completed]
        if self._schema is not None or len(plan.tasks) == 1:
            self._results = await executor.get_final_result()
        elif len(results) == 1:
            self._results = await context.memory.get_value(results[0])
        elif results:
            async with aclosing(self._synthesised(context, results, plan)) as events:
                async for event in events:
                    yield event

    def _planner(self, context: RunContext, options: StepOptions) -> Planner:
        return Planner(
            objective=self.objective,
            context=context,
            model=self._model,
            inputs=self._inputs,
            output_schema=self._schema,
            planning_tools=self._planning_tools,
            max_steps=self._max_steps,
            **options,
        )

    def _impose_schema(self, plan: TaskPlan) -> None:
        if self._schema is not None and plan.tasks and plan.tasks[-1].steps:
            plan.tasks[-1].steps[-1].output_schema = dict(self._schema)

    async def _synthesised(
        self, context: RunContext, keys: Sequence[str], plan: TaskPlan
    ) -> AsyncGenerator[Event, None]:
        """Make one answer of the results of several tasks."""
        # As a model would read them: in bounds, and what is long as its pointer.
        _, memory_read, _ = memory_tools(context.memory)
        # The last ones, which in a plan bring earlier ones together.
        read = await memory_read.call({"keys": list(keys[-_READ_KEYS:])})
        failed = [f"- {task.title or task.id}: {task.error}" for task in plan.tasks if task.failed]
        missing = "\n\n# Tasks without a result\n" + "\n".join(failed) if failed else ""
        talk = Conversation(
            self._model,
            system=layered(self._options.get("system_prompt"), _SYNTHESIS),
            user=f"# Objective\n{self.objective}\n\n# Results\n{read}{missing}",
            settings=self._options.get("model_settings"),
        )
        try:
            reply = await asked(context, talk)
        except ModelError as error:
            yield LogUpdate(node_id=self.name, content=str(error), severity="warning")
        else:
            if reply.text.strip():
                self._results = reply.text.strip()
                yield Chunk(node_id=self.name, content=reply.text, done=True)
                return
        self._results = await context.memory.format_for_prompt(keys=list(keys))
