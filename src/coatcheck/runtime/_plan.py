"""Steps, tasks and plans: what is to be done, and how far it is. No I/O."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ..content import dumps

Schema = str | dict[str, Any]
"""A JSON schema, or its text."""


class _Planned(BaseModel):
    # Models write both forms. A field that there is not is an error that names it.
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid"
    )


def _new_id() -> str:
    return str(uuid4())


class Step(_Planned):
    """One model turn-loop of a task. Executors write how far it is; all else is the planner's.

    >>> Step.model_validate({"id": "s2", "dependsOn": ["s1"]}).depends_on
    ['s1']
    """

    id: str = Field(default_factory=_new_id)
    """Unique in its plan."""
    instructions: str = ""
    depends_on: list[str] = []
    """Ids of steps of the same task, or keys of inputs."""
    tools: list[str] | None = None
    """Names of the caller's tools that the step may call; None allows all."""
    output_schema: Schema | None = None
    """Of its result; with one it ends by `finish_step`."""
    mode: Literal["discover", "process", "aggregate"] | None = None
    """`process` runs once for each item of what its first dependency gave."""
    per_item_instructions: str | None = None
    """For each item, with ``{field}`` or ``{item}`` in it; None takes `instructions`."""
    per_item_schema: Schema | None = None
    """Of the result for each item; None takes `output_schema`."""
    completed: bool = False
    failed: bool = False
    """Never together with `completed`."""
    error: str | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    logs: list[str] = []
    items: int | None = None
    """How many items a `process` step had."""
    items_failed: int = 0


class Task(_Planned):
    """Steps with one goal."""

    id: str = Field(default_factory=_new_id)
    title: str = ""
    description: str | None = None
    steps: list[Step] = []
    depends_on: list[str] = []
    """Ids of tasks of the same plan, or keys of inputs."""
    completed: bool = False
    failed: bool = False
    error: str | None = None


class TaskPlan(_Planned):
    """A graph of tasks."""

    title: str = ""
    tasks: list[Task] = []


def plan_hash(
    plan: TaskPlan | Task, *, model: str | None = None, system_prompt: str | None = None
) -> str:
    """Return the hash of all that decides what a run does: not of how far it is.

    The order of a step's tools makes no difference.

    Args:
        plan: What is run.
        model: The name of the model that runs it.
        system_prompt: What the caller put before the prompts.
    """
    tasks = plan.tasks if isinstance(plan, TaskPlan) else [plan]
    what = [plan.title, [_planned(task) for task in tasks], model, system_prompt]
    return blake2b(dumps(what), digest_size=16).hexdigest()


def _planned(task: Task) -> list[object]:
    steps: Sequence[object] = [
        [
            step.id,
            step.instructions,
            step.depends_on,
            None if step.tools is None else sorted(step.tools),
            step.output_schema,
            step.mode,
            step.per_item_instructions,
            step.per_item_schema,
        ]
        for step in task.steps
    ]
    return [task.id, task.title, task.description, task.depends_on, steps]
