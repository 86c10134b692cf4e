import json
from typing import Any

import pytest
from pydantic import ValidationError

from coatcheck.runtime import Step, Task, TaskPlan, plan_hash


def plan() -> TaskPlan:
    research = Step(id="r1", instructions="Search.", tools=["search", "fetch"])
    report = Step(id="w1", instructions="Write.", output_schema={"type": "object"})
    return TaskPlan(
        title="Report",
        tasks=[
            Task(id="research", title="Research", steps=[research]),
            Task(id="write", title="Write", depends_on=["research"], steps=[report]),
        ],
    )


def test_b73_a_plan_is_read_in_both_ways_of_writing_names() -> None:
    camel = {
        "title": "T",
        "tasks": [
            {
                "id": "t",
                "title": "T",
                "dependsOn": ["q"],
                "steps": [
                    {"id": "s", "dependsOn": ["q"], "outputSchema": "{}", "perItemSchema": None}
                ],
            }
        ],
    }
    snake = json.loads(
        json.dumps(camel)
        .replace("dependsOn", "depends_on")
        .replace("outputSchema", "output_schema")
        .replace("perItemSchema", "per_item_schema")
    )

    assert TaskPlan.model_validate(camel) == TaskPlan.model_validate(snake)
    step = TaskPlan.model_validate(camel).tasks[0].steps[0]
    assert (step.depends_on, step.output_schema) == (["q"], "{}")


def test_b75_a_step_without_id_and_instructions_gets_a_uuid_and_empty_text() -> None:
    one, other = Step(), Step.model_validate({})

    assert len(one.id) == 36
    assert one.id != other.id
    assert (one.instructions, one.depends_on, one.tools) == ("", [], None)


def test_a_field_that_there_is_not_is_named() -> None:
    with pytest.raises(ValidationError, match="depend_on"):
        Step.model_validate({"id": "s", "depend_on": ["a"]})


def test_a_plan_survives_json() -> None:
    before = plan()

    assert TaskPlan.model_validate_json(before.model_dump_json()) == before
    assert TaskPlan.model_validate_json(before.model_dump_json(by_alias=True)) == before


def test_two_steps_share_no_list() -> None:
    one, other = Step(), Step()
    one.logs.append("x")

    assert other.logs == []


def test_the_hash_is_of_what_is_planned_and_not_of_how_far_it_is() -> None:
    run = plan()
    run.tasks[0].completed = True
    run.tasks[0].steps[0].completed = True
    run.tasks[1].steps[0].logs.append("x")
    run.tasks[0].steps[0].tools = ["fetch", "search"]

    assert plan_hash(run) == plan_hash(plan())
    assert plan_hash(run, model="m") != plan_hash(run) != plan_hash(run, system_prompt="p")


@pytest.mark.parametrize(
    ("at", "name", "value"),
    [
        ([], "title", "Other"),
        ([0], "id", "other"),
        ([0], "title", "Other"),
        ([0], "description", "Other"),
        ([1], "depends_on", []),
        ([0, 0], "id", "other"),
        ([0, 0], "instructions", "Other."),
        ([0, 0], "depends_on", ["q"]),
        ([0, 0], "tools", ["search"]),
        ([0, 0], "tools", None),
        ([1, 0], "output_schema", {"type": "array"}),
        ([0, 0], "mode", "process"),
        ([0, 0], "per_item_instructions", "{item}"),
        ([0, 0], "per_item_schema", {}),
    ],
)
def test_each_change_of_a_plan_changes_its_hash(at: list[int], name: str, value: Any) -> None:
    changed = plan()
    part: Any = changed
    for index, folder in zip(at, ("tasks", "steps"), strict=False):
        part = getattr(part, folder)[index]
    setattr(part, name, value)

    assert plan_hash(changed) != plan_hash(plan())


def test_the_hash_of_a_task_is_its_own() -> None:
    task = plan().tasks[0]

    assert plan_hash(task) == plan_hash(task.model_copy(deep=True))
    assert plan_hash(task) != plan_hash(plan())
