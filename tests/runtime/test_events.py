import pytest
from pydantic import ValidationError

from coatcheck.runtime import (
    EVENT,
    Chunk,
    Event,
    LogUpdate,
    PlanningUpdate,
    Step,
    StepResult,
    Task,
    TaskUpdate,
    ToolCallUpdate,
)
from coatcheck.runtime._events import step_result, task_update

STEP = Step(id="s", logs=["begun"])
TASK = Task(id="t", title="T", steps=[STEP])
EVENTS: list[Event] = [
    Chunk(content="x", node_id="s"),
    ToolCallUpdate(node_id="s", tool_call_id="c", name="search", args={"q": [1]}),
    LogUpdate(node_id="t", node_name="T", content="x", severity="error"),
    PlanningUpdate(phase="validation", status="failed", content="x"),
    StepResult(step=STEP, result={"a": 1}, is_task_result=True),
    TaskUpdate(event="step_started", task=TASK, step=STEP, node_id="s"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_an_event_survives_json_and_is_told_by_its_type(event: Event) -> None:
    again = EVENT.validate_json(EVENT.dump_json(event))

    assert again == event
    assert type(again) is type(event)


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_python({"type": "rumour", "content": "x"})


def test_an_event_tells_how_things_stood() -> None:
    step = Step(id="s")
    task = Task(id="t", steps=[step])
    update, result = task_update("step_started", task, step), step_result(step, 1)

    step.completed = task.completed = True
    step.logs.append("later")

    assert update.step is not None
    assert (update.task.completed, update.step.completed) == (False, False)
    assert (update.task.steps[0].completed, result.step.completed) == (False, False)
    assert update.step.logs == update.task.steps[0].logs == result.step.logs == []
    assert update.node_id == "s"
    assert task_update("task_created", task).node_id == "t"


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        setattr(EVENTS[0], "node_id", "other")  # noqa: B010 - the type checkers know it is frozen
