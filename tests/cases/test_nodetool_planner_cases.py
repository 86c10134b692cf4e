"""Cases of seed 002 about planner and agent: each test names its case. The model is scripted."""

import json
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Bank
from coatcheck.runtime import (
    Agent,
    Chunk,
    Event,
    Planner,
    PlanningUpdate,
    RunContext,
    TaskUpdate,
)

ANY: dict[str, object] = {}
STEP = {"id": "s1", "instructions": "Do it."}


def lookup(word: str) -> str:
    """Look a word up."""
    return word


@pytest.fixture
def context(bank: Bank) -> RunContext:
    return RunContext(bank)


def add(id_: str, *depends_on: str, **more: Any) -> tuple[str, object]:
    steps = more.pop("steps", [{"id": f"{id_}_s", "instructions": f"Work on <{id_}>."}])
    task = {"id": id_, "title": f"Title of {id_}", "steps": steps, "depends_on": list(depends_on)}
    return "add_task", {**task, **more}


def create(*steps: object, **more: Any) -> tuple[str, object]:
    return "create_task", {"title": "The task", "steps": list(steps), **more}


FINISH = ("finish_plan", {"title": "The plan"})


def planner(context: RunContext, script: Any, **options: Any) -> Planner:
    given: dict[str, Any] = {"objective": "Find out.", "tools": [lookup], **options}
    return Planner(context=context, model=script.model, **given)


async def run(executor: Any, *given: object) -> list[Event]:
    async with aclosing(executor.execute(*given)) as events:
        return [event async for event in events]


def failures(events: list[Event]) -> list[str]:
    return [
        each.content
        for each in events
        if isinstance(each, PlanningUpdate)
        and (each.phase, each.status) == ("validation", "failed")
    ]


async def test_b31_a_planned_step_runs_and_its_result_is_in_memory_and_the_agents(
    context: RunContext, scripted: Any
) -> None:
    answer = {"result": {"answer": 42}}
    step = {"id": "t1_s", "instructions": "Work on <t1>.", "output_schema": ANY}
    script = scripted(
        {"# Objective": [add("t1", steps=[step]), FINISH], "<t1>": [("finish_step", answer)]}
    )
    agent = Agent(objective="Find the answer.", model=script.model)

    events = await run(agent, context)

    assert await context.memory.get_value("task:t1") == {"answer": 42}
    assert agent.get_results() == {"answer": 42}
    told = [each.event for each in events if isinstance(each, TaskUpdate)]
    expected = ["task_planned", "task_created", "step_started", "step_completed", "task_completed"]
    assert told == expected


async def test_b69_a_valid_task_of_two_steps_is_created_with_its_dependencies(
    context: RunContext, scripted: Any
) -> None:
    script = scripted(
        [create(STEP, {"id": "s2", "instructions": "Then this.", "depends_on": ["s1"]})]
    )
    planning = planner(context, script, single_task=True)

    events = await run(planning)

    assert planning.plan is not None
    (task,) = planning.plan.tasks
    assert [step.id for step in task.steps] == ["s1", "s2"]
    assert [step.depends_on for step in task.steps] == [[], ["s1"]]
    assert isinstance(events[-1], PlanningUpdate)
    assert (events[-1].phase, events[-1].status) == ("complete", "success")
    assert planning.error is None


async def test_b69_the_model_is_told_that_its_task_was_created(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([[("create_task", ANY), create(STEP)], "never asked"])

    await run(planner(context, script, single_task=True))

    assert [len(messages) for messages in script.asked] == [1]


BAD_STEPS: list[tuple[list[Any], str]] = [
    ([STEP, {"id": "s2", "depends_on": ["s9"]}], "'s9'"),
    ([STEP, STEP], "'s1' stands 2 times"),
    (
        [{"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}],
        "circle: 'a' -> 'b' -> 'a'",
    ),
    ([{"id": "a", "depends_on": ["a"]}], "'a' depends on itself"),
    ([], "has no steps"),
    ([{"id": "a", "tools": ["delete_all"]}], "'delete_all'"),
    ([{"id": "a", "instruct": "?"}], "'steps.0.instruct': there is no such field"),
    ([{"id": "a", "mode": "guess"}], "steps.0.mode"),
    ([{"id": "a", "depends_on": "b"}], "steps.0.depends_on"),
    (["just text"], "steps.0"),
    ([{"id": ""}], "1 to 200 characters"),
    ([{"id": f"s{at}", "depends_on": [f"s{at - 1}"][:at]} for at in range(51)], "max_steps=50"),
]


@pytest.mark.parametrize(("steps", "named"), BAD_STEPS, ids=[named for _, named in BAD_STEPS])
async def test_b70_steps_that_cannot_be_run_are_refused_and_the_culprit_is_named(
    context: RunContext, scripted: Any, steps: list[object], named: str
) -> None:
    script = scripted([create(*steps)] * 3)
    planning = planner(context, script, single_task=True)

    events = await run(planning)

    assert planning.plan is None
    assert [named in each for each in failures(events)] == [True] * 3
    refused = [json.loads(text) for text in script.returned()]
    assert [each["status"] for each in refused] == ["validation_failed"] * 2
    assert all(named in "; ".join(each["errors"]) for each in refused)
    assert not [each for each in events if isinstance(each, TaskUpdate)]
    assert await context.memory.size() == 0


async def test_b70_a_task_that_was_corrected_is_taken(context: RunContext, scripted: Any) -> None:
    script = scripted([create(STEP, STEP), create(STEP)])
    planning = planner(context, script, single_task=True)

    await run(planning)

    assert planning.plan is not None
    assert [step.id for step in planning.plan.tasks[0].steps] == ["s1"]


@pytest.mark.parametrize("where", ["given", "in memory"])
async def test_b71_a_step_may_depend_on_an_input(
    context: RunContext, scripted: Any, where: str
) -> None:
    inputs = {"region": "EU"} if where == "given" else {}
    if where == "in memory":
        await context.memory.set("input:region", "EU")
    script = scripted([create({**STEP, "depends_on": ["region"]})])
    planning = planner(context, script, single_task=True, inputs=inputs)

    await run(planning)

    assert planning.plan is not None
    assert planning.plan.tasks[0].steps[0].depends_on == ["region"]


BAD_TASKS = [
    ([add("t1"), *[add("t1")] * 3], "'t1' stands 2 times"),
    ([add("t1", "t9")] * 3, "'t9'"),
    ([add("t1"), *[add("t2", steps=[{"id": "t1_s"}])] * 3], "'t1_s' stands 2 times"),
    ([FINISH] * 3, "has no tasks"),
    ([add("t1", "t1")] * 3, "'t1' depends on itself"),
    ([add("t1"), add("t2", "t1"), *[("remove_task", {"id": "t1"})] * 3], "'t2' depends on 't1'"),
    ([("remove_task", {"id": "t1"})] * 3, "no task 't1'"),
    ([add("t1"), *[("finish_plan", {"title": 7})] * 3], "title"),
    ([("add_task", "no json")] * 3, "not a JSON object"),
]


@pytest.mark.parametrize(("turns", "named"), BAD_TASKS, ids=[named for _, named in BAD_TASKS])
async def test_b72_a_plan_that_cannot_be_run_is_refused_three_times_then_there_is_none(
    context: RunContext, scripted: Any, turns: list[Any], named: str
) -> None:
    script = scripted(turns)
    planning = planner(context, script)

    events = await run(planning)

    assert planning.plan is None
    assert [named in each for each in failures(events)] == [True] * 3
    assert planning.error is not None
    assert named in planning.error


async def test_b72_a_task_may_be_taken_back_and_added_anew(
    context: RunContext, scripted: Any
) -> None:
    script = scripted(
        [[add("t1"), add("t2", "t1")], ("remove_task", {"id": "t2"}), [add("t3", "t1"), FINISH]]
    )
    planning = planner(context, script)

    events = await run(planning)

    assert planning.plan is not None
    assert [task.id for task in planning.plan.tasks] == ["t1", "t3"]
    assert planning.plan.title == "The plan"
    told = [each.event for each in events if isinstance(each, TaskUpdate)]
    assert told == ["task_planned", "task_planned", "task_removed", "task_planned"]
    replies = [json.loads(text) for text in script.returned()]
    assert replies == [
        {"status": "task_added", "id": "t1", "title": "Title of t1", "steps": 1, "tasksSoFar": 1},
        {"status": "task_added", "id": "t2", "title": "Title of t2", "steps": 1, "tasksSoFar": 2},
        {"status": "task_removed", "id": "t2", "tasksSoFar": 1},
    ]


async def test_b73_names_in_camel_case_and_missing_dependencies_are_taken(
    context: RunContext, scripted: Any
) -> None:
    second = {"id": "s2", "dependsOn": ["s1"], "outputSchema": {"type": "object"}}
    script = scripted([create(STEP, second)])
    planning = planner(context, script, single_task=True)

    await run(planning)

    assert planning.plan is not None
    steps = planning.plan.tasks[0].steps
    assert [step.depends_on for step in steps] == [[], ["s1"]]
    assert [step.output_schema for step in steps] == [None, {"type": "object"}]


@pytest.mark.parametrize("single", [True, False])
async def test_b74_a_model_that_never_calls_the_tool_makes_no_plan_and_is_told_of(
    context: RunContext, scripted: Any, single: bool
) -> None:
    script = scripted(["I would rather talk."] * 3)
    planning = planner(context, script, single_task=single)

    events = await run(planning)

    assert planning.plan is None
    chunks = [each.content for each in events if isinstance(each, Chunk)]
    assert len([text for text in chunks if "Failed" in text]) == 1
    assert planning.error is not None
    assert "called no tool" in planning.error
    assert "I would rather talk." in planning.error
    assert isinstance(events[-1], PlanningUpdate)
    assert (events[-1].phase, events[-1].status) == ("complete", "failed")


async def test_b75_a_step_without_id_and_instructions_gets_an_id_and_empty_text(
    context: RunContext, scripted: Any
) -> None:
    script = scripted([create({}, {"id": None, "instructions": None, "dependsOn": None})])
    planning = planner(context, script, single_task=True)

    await run(planning)

    assert planning.plan is not None
    first, second = planning.plan.tasks[0].steps
    assert len(first.id) == len(second.id) == 36
    assert first.id != second.id
    assert (first.instructions, second.instructions, second.depends_on) == ("", "", [])
