"""How a run goes on in another process: memory itself says what is finished."""

from typing import Self

from ..memory import AgentMemory, MemoryEntry, memory_keys
from ._context import RunContext
from ._plan import Task, TaskPlan, plan_hash


class Checkpoint:
    """What of a plan is finished already.

    Finished is a step or task whose entry is committed with the hash of this plan: what a plan
    that was changed since wrote counts for nothing, and neither does what hosts wrote themselves.
    A failed step has an entry without a hash, so it runs again. A step that was not finished
    begins anew: its tools may be called twice.

    Args:
        memory: Of the run.
        plan: Hash of the plan; None for a run that cannot be resumed, in which nothing counts as
            finished.
    """

    def __init__(self, memory: AgentMemory, plan: str | None = None) -> None:
        self.memory = memory
        self.plan = plan

    @classmethod
    def of(
        cls,
        context: RunContext,
        plan: TaskPlan | Task,
        *,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> Self:
        """Return the checkpoint of a run that can be resumed.

        Args:
            context: Of the run.
            plan: What it runs.
            model: The name of its model; another model is another run, and so is a prompt.
            system_prompt: What the caller put before the prompts.

        Raises:
            ValueError: Its store ends with this process, so that nothing could be resumed.
        """
        if context.memory.bank.ends_with_process:
            raise ValueError(
                "a run in the memory of this process cannot be resumed: "
                "open its context on file:DIR, redis:// or another store that lasts"
            )
        return cls(context.memory, plan_hash(plan, model=model, system_prompt=system_prompt))

    @property
    def run_name(self) -> str | None:
        """The name of the run of the bank, the same whenever it is resumed; None where it is not.

        What the run held before it was broken off is held again.
        """
        return None if self.plan is None else resumed_name(self.plan)

    async def finished(self, key: str) -> MemoryEntry | None:
        """Return the entry of a step or task that is finished, else None."""
        if self.plan is None:
            return None
        entry = await self.memory.get(key)
        return entry if entry is not None and entry.plan_hash == self.plan else None

    async def finish_step(
        self, step_id: str, value: object, *, title: str | None = None
    ) -> MemoryEntry:
        """Write the result of a step. With this it is finished."""
        return await self.memory.set(
            memory_keys.step(step_id),
            value,
            kind="step_result",
            source=step_id,
            title=title,
            plan_hash=self.plan,
        )

    async def fail_step(self, step_id: str, error: str, *, title: str | None = None) -> MemoryEntry:
        """Write why a step failed. It is not finished by that."""
        return await self.memory.set(
            memory_keys.step(step_id),
            {"error": error},
            kind="step_result",
            source=step_id,
            title=title,
        )

    async def finish_task(
        self, task: Task, value: object, *, only_if_absent: bool = False
    ) -> MemoryEntry:
        """Write the result of a task. With this it is finished.

        Args:
            task: Gives title and description.
            value: Its result.
            only_if_absent: Leave a result that is there, as of a step that ended the task.
        """
        return await self.memory.set(
            memory_keys.task(task.id),
            value,
            kind="task_result",
            source=task.id,
            title=task.title or None,
            description=task.description,
            plan_hash=self.plan,
            only_if_absent=only_if_absent,
        )


def resumed_name(plan: str) -> str:
    """Return the name of the run of the bank in which the plan with this hash is run."""
    return f"plan-{plan}"
