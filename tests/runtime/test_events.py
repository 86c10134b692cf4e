import gc
import weakref

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
from coatcheck.runtime._events import TaskEvent, Telling

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
    telling = Telling()
    update, result = telling.task_update("step_started", task, step), telling.step_result(step, 1)

    step.completed = task.completed = True
    step.logs.append("later")

    assert update.step is not None
    assert (update.task.completed, update.step.completed) == (False, False)
    assert (update.task.steps[0].completed, result.step.completed) == (False, False)
    assert update.step.logs == update.task.steps[0].logs == result.step.logs == []
    assert update.node_id == "s"
    assert telling.task_update("task_created", task).node_id == "t"


def test_what_changed_between_two_events_is_told_anew() -> None:
    step = Step(id="s")
    task = Task(id="t", steps=[step, Step(id="other")])
    telling = Telling()
    first = telling.task_update("step_started", task, step)

    step.logs.append("later")
    second = telling.task_update("step_completed", task, step)

    assert first.step is not None
    assert second.step is not None
    assert (first.step.logs, second.step.logs) == ([], ["later"])
    assert (first.task.steps[0].logs, second.task.steps[0].logs) == ([], ["later"])


def test_of_what_did_not_change_two_events_hold_the_same() -> None:
    task = Task(id="t", steps=[Step(id="s"), Step(id="other")])
    telling = Telling()

    first, second = (
        telling.task_update(event, task, task.steps[0])
        for event in ("task_created", "step_started")
    )

    assert second.task.steps[1] is first.task.steps[1] is not task.steps[1]
    assert second.step is second.task.steps[0] is first.step


@pytest.mark.parametrize("end", ["task_completed", "task_failed"])
def test_of_a_task_that_ended_nothing_is_kept(end: TaskEvent) -> None:
    task = Task(id="t", steps=[Step(id="s")])
    telling = Telling()
    telling.task_update("task_created", task)
    last = weakref.ref(telling.task_update(end, task).task.steps[0])

    gc.collect()

    assert last() is None


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        setattr(EVENTS[0], "node_id", "other")  # noqa: B010 - the type checkers know it is frozen
