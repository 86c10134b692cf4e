"""One task: its steps in the order of their dependencies, and the result of the last one."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Unpack

from ..memory import AgentMemory, memory_keys
from ._check import check_depth, check_task, known_dependencies
from ._checkpoint import Checkpoint
from ._context import RunContext
from ._engine import Settled, Unit
from ._events import Event
from ._fan_out import FanOut
from ._means import Means, StepOptions, at_least
from ._merged import Emit, merged_run
from ._plan import Step, Task
from ._step import StepRun, held_by

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class TaskExecutor:
    """Runs the steps of one task. The task's result is that of its finish step, the last one.

    Args:
        task: What is to be done. How far it is, is written into it.
        context: Of the run.
        model: A name as ``openai:gpt-5``, or a model of pydantic-ai.
        inputs: Are put into memory under ``input:KEY``, unless something is there.
        max_steps: Longest chain of steps that wait for each other.
        max_step_iterations: Most requests to the model in one step.
        final_step_id: The finish step, where it is not the last one. It waits for all others.
        parallel_execution: Whether steps that do not wait for each other go on at once.
        upstream_memory_keys: Entries that the first message of each step names.
        checkpoint: Of a run that can be resumed; None for one that cannot.
        options: See `StepOptions`.

    Raises:
        ImportError: The `agent` extra, or the package of the provider, is missing.
        ValueError: The model is unknown or has no key, there is no such final step, two tools
            have one name, a number is outside its range.
        TypeError: A tool is none.

    >>> import asyncio
    >>> from pydantic_ai.messages import ModelResponse, TextPart
    >>> from pydantic_ai.models.function import FunctionModel
    >>> async def reply(messages, info):  # in place of a model
    ...     return ModelResponse(parts=[TextPart("Moss likes shade.")])
    >>> async def example() -> object:
    ...     task = Task(steps=[Step(id="find"), Step(id="tell", depends_on=["find"])])
    ...     executor = TaskExecutor(task=task, context=RunContext(), model=FunctionModel(reply))
    ...     async with aclosing(executor.execute()) as events:
    ...         print([event.step.id async for event in events if event.type == "step_result"])
    ...     return await executor.get_result()
    >>> asyncio.run(example())
    ['find', 'tell']
    'Moss likes shade.'
    """

    def __init__(
        self,
        *,
        task: Task,
        context: RunContext,
        model: "Model | str",
        inputs: Mapping[str, object] | None = None,
        max_steps: int = 50,
        max_step_iterations: int = 10,
        final_step_id: str | None = None,
        parallel_execution: bool = False,
        upstream_memory_keys: Iterable[str] = (),
        checkpoint: Checkpoint | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        at_least("max_steps", max_steps)
        at_least("max_step_iterations", max_step_iterations)
        if final_step_id is not None and final_step_id not in {step.id for step in task.steps}:
            raise ValueError(f"final_step_id is {final_step_id!r}, which is no step of the task")
        self.task = task
        self._inputs = dict(inputs or {})
        self._max_steps = max_steps
        self._means = Means.of(context, model, **options)
        self._checkpoint = Checkpoint(context.memory) if checkpoint is None else checkpoint
        self._run = TaskRun(
            self._means,
            task,
            self._checkpoint,
            max_step_iterations=max_step_iterations,
            final_step_id=final_step_id,
            is_parallel=parallel_execution,
            upstream=upstream_memory_keys,
        )

    async def execute(self) -> AsyncGenerator[Event, None]:
        """Run the task, and yield what it tells. Close the generator to stop it.

        Raises:
            InvalidPlanError: It cannot be run as it stands: nothing was run, told or written.
            RunCancelledError: The run was cancelled.
            StoreError: A result could not be kept.
        """
        if not self.task.steps:
            return
        memory = self._means.context.memory
        known = await known_inputs([self.task], self._inputs, memory)
        check_task(self.task, inputs=known, tools=self._means.tool_names)
        check_depth("step", self.task.steps, max_steps=self._max_steps)
        await seed_inputs(self._inputs, memory)
        name = self._checkpoint.run_name
        async with aclosing(merged_run(self._means.context, self._run.run, name)) as events:
            async for event in events:
                yield event

    async def get_result(self) -> object:
        """Return the task's result from memory; None where there is none."""
        memory = self._means.context.memory
        return None if self.task.failed else await memory.get_value(memory_keys.task(self.task.id))


class TaskRun:
    """One run of a task, as part of a larger one.

    Args:
        means: What its steps are run with.
        task: What is to be done; it has steps.
        checkpoint: Takes results.
        max_step_iterations: Most requests to the model in one step.
        final_step_id: Its finish step; None is the last one.
        is_parallel: Whether steps that do not wait for each other go on at once.
        upstream: Entries that the first message of each step names.
    """

    def __init__(
        self,
        means: Means,
        task: Task,
        checkpoint: Checkpoint,
        *,
        max_step_iterations: int,
        final_step_id: str | None = None,
        is_parallel: bool = True,
        upstream: Iterable[str] = (),
    ) -> None:
        self._means = means
        self._task = task
        self._checkpoint = checkpoint
        self._max_step_iterations = max_step_iterations
        self._is_parallel = is_parallel
        self._upstream = tuple(upstream)
        self._final_id = final_step_id or (task.steps[-1].id if task.steps else "")

    async def run(self, emit: Emit) -> str | None:
        """Run the task. Return why it failed, None where it did not."""
        task = self._task
        task.completed, task.failed, task.error = False, False, None
        by_key = {memory_keys.step(step.id): step for step in task.steps}

        async def work(key: str) -> str | None:
            step = by_key[key]
            if step.completed:
                return None
            if step.mode != "process":
                return await self._step_run(step).run(emit)
            whole = self._step_run(step)
            return await FanOut(self._means, whole, self._checkpoint, self._item_run).run(emit)

        async def tell(settled: Settled) -> None:
            if settled.blocked_by is not None and settled.error is not None:
                await self._step_run(by_key[settled.key]).fail(settled.error, emit)

        width = None if self._is_parallel else 1
        await self._means.context.engine.run(self._units(), work, tell, width=width)
        failed = [step for step in task.steps if step.failed]
        # The first that was run, not one that only waited for it.
        failed.sort(key=lambda step: step.start_time is None)
        if failed:
            task.failed, task.error = True, f"step {failed[0].id!r} failed: {failed[0].error}"
            return task.error
        await self._keep_result()
        task.completed = True
        return None

    def _units(self) -> list[Unit]:
        """Return the steps after those that they wait for; the finish step waits for all."""
        steps = self._task.steps
        ids = {step.id for step in steps}
        after = {step.id: known_dependencies(step.depends_on, ids) for step in steps}
        behind = _behind(self._final_id, after)
        after[self._final_id] = [id_ for id_ in after if id_ not in behind]
        return [
            Unit(memory_keys.step(id_), tuple(memory_keys.step(other) for other in others))
            for id_, others in after.items()
        ]

    def _step_run(self, step: Step) -> StepRun:
        return StepRun(
            self._means,
            self._task,
            step,
            self._checkpoint,
            max_iterations=self._max_step_iterations,
            is_final=step.id == self._final_id,
            upstream=self._upstream,
        )

    def _item_run(self, step: Step) -> StepRun:
        return StepRun(
            self._means,
            self._task,
            step,
            self._checkpoint,
            max_iterations=self._max_step_iterations,
            upstream=self._upstream,
        )

    async def _keep_result(self) -> None:
        """Write the result of a task whose finish step was done before this run."""
        memory = self._means.context.memory
        entry = await memory.get(memory_keys.step(self._final_id))
        if entry is not None and not await memory.has(memory_keys.task(self._task.id)):
            await self._checkpoint.finish_task(
                self._task, await held_by(entry, memory), only_if_absent=True
            )


async def known_inputs(
    tasks: Sequence[Task], inputs: Mapping[str, object], memory: AgentMemory
) -> set[str]:
    """Return the inputs that tasks and steps may depend on: those given, and those in memory."""
    known = set(inputs)
    for name in _outside(tasks) - known:
        if await _has_input(name, memory):
            known.add(name)
    return known


async def seed_inputs(inputs: Mapping[str, object], memory: AgentMemory) -> None:
    """Write inputs that are not in memory yet."""
    for name, value in inputs.items():
        await memory.set(
            memory_keys.input(name), value, kind="input", title=name, only_if_absent=True
        )


def _outside(tasks: Sequence[Task]) -> set[str]:
    """Return what tasks and steps depend on that is none of their own."""
    task_ids = {task.id for task in tasks}
    outside = {id_ for task in tasks for id_ in task.depends_on} - task_ids
    for task in tasks:
        step_ids = {step.id for step in task.steps}
        outside |= {id_ for step in task.steps for id_ in step.depends_on} - step_ids
    return outside


async def _has_input(name: str, memory: AgentMemory) -> bool:
    try:
        return await memory.has(memory_keys.input(name))
    except ValueError:  # what cannot be a key is in no memory
        return False


def _behind(id_: str, after: Mapping[str, Iterable[str]]) -> set[str]:
    """Return a step and all that wait for it, directly or by way of others."""
    behind, is_growing = {id_}, True
    while is_growing:
        more = {each for each, others in after.items() if behind.intersection(others)}
        is_growing = not more <= behind
        behind |= more
    return behind
