"""What a run tells while it goes on: one record a kind of event, told apart by `type`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ._plan import Step, Task

TaskEvent = Literal[
    "task_planned",
    "task_removed",
    "task_created",
    "step_started",
    "entered_conclusion_stage",
    "step_completed",
    "step_failed",
    "task_completed",
    "task_failed",
]
_ENDS = frozenset({"task_completed", "task_failed", "task_removed"})


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Chunk(_Told):
    """A piece of what a model says."""

    type: Literal["chunk"] = "chunk"
    node_id: str | None = None
    """The step or task that it belongs to, as in all events."""
    content: str
    done: bool = False
    """Whether it is the last one of this reply."""


class ToolCallUpdate(_Told):
    """A model calls a tool; every access to memory is one."""

    type: Literal["tool_call_update"] = "tool_call_update"
    node_id: str
    tool_call_id: str | None = None
    name: str
    args: dict[str, Any]
    """As the model wrote them: pointers are not resolved."""
    message: str = ""
    """A few words for whoever looks on."""


class LogUpdate(_Told):
    """Something that whoever runs it should know."""

    type: Literal["log_update"] = "log_update"
    node_id: str
    node_name: str = ""
    content: str
    severity: Literal["info", "warning", "error"] = "info"


class PlanningUpdate(_Told):
    """How far the planner is."""

    type: Literal["planning_update"] = "planning_update"
    phase: Literal["initialization", "generation", "validation", "complete"]
    status: Literal["started", "running", "failed", "success"]
    content: str = ""


class StepResult(_Told):
    """What came of a step, failed or not."""

    type: Literal["step_result"] = "step_result"
    step: Step
    """As it stood then."""
    result: Any
    """The value; where that was banked its pointer, of a failed step ``{"error": …}``."""
    error: str | None = None
    is_task_result: bool = False


class TaskUpdate(_Told):
    """A task or step began or ended."""

    type: Literal["task_update"] = "task_update"
    event: TaskEvent
    task: Task
    """As it stood then."""
    step: Step | None = None
    node_id: str | None = None


Event = Annotated[
    Chunk | ToolCallUpdate | LogUpdate | PlanningUpdate | StepResult | TaskUpdate,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads an event from JSON values: ``EVENT.validate_python``, ``EVENT.validate_json``."""


class Telling:
    """Makes the events of steps and tasks, with these as they stand then.

    Of what did not change between two events both hold the same copy: a task of many steps has
    an event or two for each of them.
    """

    def __init__(self) -> None:
        self._copies: dict[str, Step] = {}

    def step_result(
        self, step: Step, result: object, *, error: str | None = None, is_task_result: bool = False
    ) -> StepResult:
        """Return the event of a step's result."""
        return StepResult(
            step=self._copy(step), result=result, error=error, is_task_result=is_task_result
        )

    def task_update(self, event: TaskEvent, task: Task, step: Step | None = None) -> TaskUpdate:
        """Return the event of a task or of one of its steps."""
        steps = [self._copy(each) for each in task.steps]
        if event in _ENDS:  # nothing more is told of them
            for each in steps:
                self._copies.pop(each.id, None)
        else:
            self._copies.update((each.id, each) for each in steps)
        return TaskUpdate(
            event=event,
            task=task.model_copy(update={"steps": steps}),
            step=None if step is None else self._copy(step),
            node_id=task.id if step is None else step.id,
        )

    def _copy(self, step: Step) -> Step:
        told = self._copies.get(step.id)
        if told is not None and vars(told) == vars(step):
            return told
        return step.model_copy(update={"logs": list(step.logs)})
