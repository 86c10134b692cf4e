"""One step: what comes of the talk with its model, told and kept."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Unpack

from ..memory import AgentMemory, MemoryEntry, memory_keys
from ._check import check_step
from ._checkpoint import Checkpoint
from ._context import RunContext
from ._events import Event, StepResult
from ._loop import Loop, StepFailedError
from ._means import Means, StepOptions, at_least
from ._merged import Emit, merged_run
from ._plan import Step, Task

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_TITLE_CHARS = 80
_FAILED_TITLE_CHARS = 60


class StepExecutor:
    """Runs one step, and writes what comes of it to memory.

    Args:
        task: What the step belongs to.
        step: What is to be done. How far it is, is written into it.
        context: Of the run.
        model: A name as ``openai:gpt-5``, or a model of pydantic-ai.
        max_iterations: Most requests to the model.
        use_finish_task: Whether the result is that of the task too.
        upstream_memory_keys: Entries that its first message names, beside those of the steps
            that it depends on.
        checkpoint: Of a run that can be resumed; None for one that cannot.
        options: See `StepOptions`.

    Raises:
        ImportError: The `agent` extra, or the package of the provider, is missing.
        ValueError: The model is unknown or has no key, two tools have one name, a number is
            outside its range.
        TypeError: A tool is none.

    >>> import asyncio
    >>> from pydantic_ai.messages import ModelResponse, TextPart
    >>> from pydantic_ai.models.function import FunctionModel
    >>> async def reply(messages, info):  # in place of a model
    ...     return ModelResponse(parts=[TextPart("Moss likes shade.")])
    >>> async def example() -> object:
    ...     step = Step(id="s1", instructions="Say one thing about moss.")
    ...     executor = StepExecutor(
    ...         task=Task(steps=[step]), step=step, context=RunContext(), model=FunctionModel(reply)
    ...     )
    ...     async with aclosing(executor.execute()) as events:
    ...         print([event.type async for event in events])
    ...     return await executor.get_result()
    >>> asyncio.run(example())
    ['task_update', 'chunk', 'chunk', 'task_update', 'step_result']
    'Moss likes shade.'
    """

    def __init__(
        self,
        *,
        task: Task,
        step: Step,
        context: RunContext,
        model: "Model | str",
        max_iterations: int = 30,
        use_finish_task: bool = False,
        upstream_memory_keys: Iterable[str] = (),
        checkpoint: Checkpoint | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        at_least("max_iterations", max_iterations)
        self._means = Means.of(context, model, **options)
        self._checkpoint = Checkpoint(context.memory) if checkpoint is None else checkpoint
        self._run = StepRun(
            self._means,
            task,
            step,
            self._checkpoint,
            max_iterations=max_iterations,
            is_final=use_finish_task,
            upstream=upstream_memory_keys,
        )

    async def execute(self) -> AsyncGenerator[Event, None]:
        """Run the step, and yield what it tells. Close the generator to stop it.

        Raises:
            InvalidPlanError: The step names an unknown tool, or its id cannot be one.
            RunCancelledError: The run was cancelled.
            StoreError: The result could not be kept.
        """
        check_step(self._run.task, self._run.step, tools=self._means.tool_names)
        name = self._checkpoint.run_name
        async with aclosing(merged_run(self._means.context, self._run.run, name)) as events:
            async for event in events:
                yield event

    async def get_result(self) -> object:
        """Return the step's result from memory: of a failed one ``{"error": …}``."""
        return await self._means.context.memory.get_value(memory_keys.step(self._run.step.id))


class StepRun:
    """One run of a step, as part of a larger one.

    Args:
        means: What it is run with.
        task: What the step belongs to.
        step: What is to be done.
        checkpoint: Takes the result.
        max_iterations: Most requests to the model.
        is_final: Whether the result is that of the task too.
        upstream: Entries that the first message names, after those that the step depends on.
    """

    def __init__(
        self,
        means: Means,
        task: Task,
        step: Step,
        checkpoint: Checkpoint,
        *,
        max_iterations: int,
        is_final: bool = False,
        upstream: Iterable[str] = (),
    ) -> None:
        self._means = means
        self._telling = means.telling
        self.task = task
        self.step = step
        self._checkpoint = checkpoint
        self._max_iterations = max_iterations
        self._is_final = is_final
        self._upstream = tuple(upstream)

    async def run(self, emit: Emit) -> str | None:
        """Run the step, unless it is finished. Return why it failed, None where it did not."""
        if await self.is_finished():
            return None
        self._means.context.check()
        self.begin()
        await emit(self._telling.task_update("step_started", self.task, self.step))
        loop = Loop(
            self._means,
            self.task,
            self.step,
            emit,
            is_final=self._is_final,
            max_iterations=self._max_iterations,
        )
        before = [dependency_key(self.task, id_) for id_ in self.step.depends_on]
        try:
            result = await loop.result([*before, *self._upstream])
        except StepFailedError as failed:
            await self.fail(str(failed), emit)
            return str(failed)
        entry = await self.keep(result.held)
        self.complete()
        await emit(self._telling.task_update("step_completed", self.task, self.step))
        await emit(self._result(entry.value))
        return None

    async def fail(self, error: str, emit: Emit) -> None:
        """Write and tell that the step failed."""
        self.step.completed, self.step.failed, self.step.error = False, True, error
        self.step.end_time = self._means.now()
        title = f"Failed: {self.step.instructions[:_FAILED_TITLE_CHARS]}"
        entry = await self._checkpoint.fail_step(self.step.id, error, title=title)
        await emit(self._telling.task_update("step_failed", self.task, self.step))
        await emit(self._result(entry.value, error))

    async def is_finished(self) -> bool:
        """Return whether the step was finished by an earlier run, as its entry says."""
        entry = await self._checkpoint.finished(memory_keys.step(self.step.id))
        if entry is None:
            return False
        self.step.completed, self.step.failed, self.step.error = True, False, None
        task_key = memory_keys.task(self.task.id)
        # A process that died between the two writes has left the task without its result.
        if self._is_final and await self._checkpoint.finished(task_key) is None:
            await self._checkpoint.finish_task(self.task, await held_by(entry, self._memory))
        return True

    def begin(self) -> None:
        """Set the step's state to that of one that goes on."""
        self.step.completed, self.step.failed, self.step.error = False, False, None
        self.step.start_time, self.step.end_time = self._means.now(), None

    def complete(self) -> None:
        """Set the step's state to that of one that is done."""
        self.step.completed, self.step.end_time = True, self._means.now()

    async def keep(self, value: object) -> MemoryEntry:
        """Write the result, also as that of the task where it is that. Return its entry."""
        title = self.step.instructions[:_TITLE_CHARS] or None
        entry = await self._checkpoint.finish_step(self.step.id, value, title=title)
        if self._is_final:
            await self._checkpoint.finish_task(self.task, await held_by(entry, self._memory))
        return entry

    def _result(self, value: object, error: str | None = None) -> StepResult:
        return self._telling.step_result(
            self.step, value, error=error, is_task_result=self._is_final
        )

    @property
    def _memory(self) -> AgentMemory:
        return self._means.context.memory


def dependency_key(task: Task, id_: str) -> str:
    """Return the key of what a step depends on: a step of its task, else an input."""
    if any(step.id == id_ for step in task.steps):
        return memory_keys.step(id_)
    return memory_keys.input(id_)


async def held_by(entry: MemoryEntry, memory: AgentMemory) -> object:
    """Return what another entry is handed to hold the same: a banked value is not banked again."""
    return entry.value if entry.pointer is None else await memory.bank.find(entry.pointer)
