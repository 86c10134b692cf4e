"""A plan: its tasks side by side, each as soon as those that it depends on are done."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Unpack

from ..memory import memory_keys
from ._check import check_depth, check_plan, known_dependencies
from ._checkpoint import Checkpoint
from ._context import RunContext
from ._engine import CONCURRENCY, Settled, Unit
from ._events import Event, LogUpdate
from ._means import Means, StepOptions, at_least
from ._merged import Emit, merged_run
from ._plan import Task, TaskPlan
from ._task import TaskRun, known_inputs, seed_inputs

if TYPE_CHECKING:
    from pydantic_ai.models import Model


class ParallelTaskExecutor:
    """Runs the tasks of a plan. One that fails blocks those that depend on it, and no others.

    Args:
        plan: What is to be done. How far it is, is written into it.
        context: Of the run.
        model: A name as ``openai:gpt-5``, or a model of pydantic-ai.
        inputs: Are put into memory under ``input:KEY``, unless something is there.
        max_iterations: Longest chain of tasks that wait for each other.
        max_step_iterations: Most requests to the model in one step.
        max_concurrent_agents: How many tasks go on at once.
        resumable: Whether a run that was broken off goes on where it was, in this process or
            another: what the same plan with the same model and prompt finished in this memory
            is not run again. Tools of a step that was not finished may be called twice.
        options: See `StepOptions`.

    Raises:
        ImportError: The `agent` extra, or the package of the provider, is missing.
        ValueError: The model is unknown or has no key, two tools have one name, a number is
            outside its range, or the store of a resumable run ends with the process.
        TypeError: A tool is none.

    >>> import asyncio
    >>> from pydantic_ai.messages import ModelResponse, TextPart
    >>> from pydantic_ai.models.function import FunctionModel
    >>> async def reply(messages, info):  # in place of a model
    ...     return ModelResponse(parts=[TextPart("Moss likes shade.")])
    >>> from coatcheck.runtime import Step
    >>> async def example() -> object:
    ...     moss, fern = Task(id="moss", steps=[Step()]), Task(id="fern", steps=[Step()])
    ...     plan = TaskPlan(title="Plants", tasks=[moss, fern])
    ...     executor = ParallelTaskExecutor(
    ...         plan=plan, context=RunContext(), model=FunctionModel(reply)
    ...     )
    ...     async with aclosing(executor.execute()) as events:
    ...         async for event in events:
    ...             pass  # show it to whoever looks on
    ...     return await executor.get_all_results()
    >>> asyncio.run(example())
    {'moss': 'Moss likes shade.', 'fern': 'Moss likes shade.'}
    """

    def __init__(
        self,
        *,
        plan: TaskPlan,
        context: RunContext,
        model: "Model | str",
        inputs: Mapping[str, object] | None = None,
        max_iterations: int = 100,
        max_step_iterations: int = 10,
        max_concurrent_agents: int = CONCURRENCY,
        resumable: bool = False,
        **options: Unpack[StepOptions],
    ) -> None:
        for name, number in (
            ("max_iterations", max_iterations),
            ("max_step_iterations", max_step_iterations),
            ("max_concurrent_agents", max_concurrent_agents),
        ):
            at_least(name, number)
        self.plan = plan
        self._inputs = dict(inputs or {})
        self._max_iterations = max_iterations
        self._max_step_iterations = max_step_iterations
        self._width = max_concurrent_agents
        self._means = Means.of(context, model, **options)
        self._checkpoint = Checkpoint(context.memory)
        if resumable:
            self._checkpoint = Checkpoint.of(
                context,
                plan,
                model=self._means.model_name,
                system_prompt=self._means.system_prompt,
            )

    async def execute(self) -> AsyncGenerator[Event, None]:
        """Run the plan, and yield what it tells. Close the generator to stop it.

        Raises:
            InvalidPlanError: It cannot be run as it stands: nothing was run, told or written.
            RunCancelledError: The run was cancelled.
            StoreError: A result could not be kept.
        """
        memory = self._means.context.memory
        known = await known_inputs(self.plan.tasks, self._inputs, memory)
        check_plan(self.plan, inputs=known, tools=self._means.tool_names)
        check_depth("task", self.plan.tasks, max_iterations=self._max_iterations)
        await seed_inputs(self._inputs, memory)
        name = self._checkpoint.run_name
        async with aclosing(merged_run(self._means.context, self._run, name)) as events:
            async for event in events:
                yield event

    @property
    def failed_task_ids(self) -> list[str]:
        """Ids of the tasks that failed or were blocked, in the order of the plan."""
        return [task.id for task in self.plan.tasks if task.failed]

    async def get_task_result(self, task_id: str) -> object:
        """Return the result of a task from memory; None where there is none."""
        return await self._means.context.memory.get_value(memory_keys.task(task_id))

    async def get_all_results(self) -> dict[str, object]:
        """Return the results of all tasks in memory, by the id of their task."""
        memory = self._means.context.memory
        return {
            entry.source or entry.key.partition(":")[2]: await memory.value_of(entry)
            for entry in await memory.list(kind="task_result")
        }

    async def get_final_result(self) -> object:
        """Return the result of the plan's last task; None where it has none."""
        last = self.plan.tasks[-1]
        return None if last.failed else await self.get_task_result(last.id)

    async def _run(self, emit: Emit) -> None:
        by_key = {memory_keys.task(task.id): task for task in self.plan.tasks}
        await emit(self._log(f"running {len(by_key)} tasks"))

        async def work(key: str) -> str | None:
            return await self._task(by_key[key], emit)

        async def tell(settled: Settled) -> None:
            task = by_key[settled.key]
            if settled.blocked_by is not None:
                task.completed, task.failed, task.error = False, True, settled.error
                await self._tell_failure(task, emit)

        engine = self._means.context.engine
        await engine.run(self._units(), work, tell, width=self._width)

    async def _task(self, task: Task, emit: Emit) -> str | None:
        """Run one task, unless it is finished."""
        if task.completed or await self._checkpoint.finished(memory_keys.task(task.id)):
            task.completed, task.failed, task.error = True, False, None
            for step in task.steps:
                step.completed, step.failed, step.error = True, False, None
            await emit(self._log("it was finished before", task))
            return None
        self._means.context.check()
        run = TaskRun(
            self._means,
            task,
            self._checkpoint,
            max_step_iterations=self._max_step_iterations,
            upstream=self._upstream(task),
        )
        await emit(self._means.telling.task_update("task_created", task))
        error = await run.run(emit)
        if error is None:
            await emit(self._means.telling.task_update("task_completed", task))
        else:
            await self._tell_failure(task, emit)
        return error

    async def _tell_failure(self, task: Task, emit: Emit) -> None:
        await emit(self._log(f"the task failed: {task.error}", task, is_error=True))
        await emit(self._means.telling.task_update("task_failed", task))

    def _log(self, content: str, task: Task | None = None, *, is_error: bool = False) -> LogUpdate:
        return LogUpdate(
            node_id="plan" if task is None else task.id,
            node_name=self.plan.title if task is None else task.title,
            content=content,
            severity="error" if is_error else "info",
        )

    def _units(self) -> list[Unit]:
        ids = {task.id for task in self.plan.tasks}
        return [
            Unit(
                memory_keys.task(task.id),
                tuple(
                    memory_keys.task(other) for other in known_dependencies(task.depends_on, ids)
                ),
            )
            for task in self.plan.tasks
        ]

    def _upstream(self, task: Task) -> list[str]:
        """Return the keys of what a task depends on."""
        ids = {each.id for each in self.plan.tasks}
        return [
            memory_keys.task(id_) if id_ in ids else memory_keys.input(id_)
            for id_ in task.depends_on
        ]
