"""What a planner's model is told, and where planning ends."""

import json
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank, Kind
from coatcheck.content import dumps, estimate_tokens
from coatcheck.errors import RunCancelledError
from coatcheck.memory import AgentMemory
from coatcheck.runtime import (
    Event,
    LogUpdate,
    Planner,
    RunContext,
    TaskUpdate,
    ToolCallUpdate,
)
from coatcheck.runtime._draft import Draft
from coatcheck.stores import MemoryStore

ANY: dict[str, object] = {}
STEP = {"id": "s1", "instructions": "Do it."}
FINISH = ("finish_plan", {"title": "The plan"})


def fetch(url: str, retries: int = 2) -> str:
    """Fetch a page.

    Over the net.
    """
    return url * retries


@pytest.fixture
def context() -> RunContext:
    return RunContext(Bank(MemoryStore(), kinds=[Kind("product-set", prefix="ps")]))


def planner(context: RunContext, script: Any, **options: Any) -> Planner:
    given: dict[str, Any] = {"objective": "Find out.", "tools": [fetch], **options}
    return Planner(context=context, model=script.model, **given)


def add(id_: str, **more: Any) -> tuple[str, object]:
    steps = more.pop("steps", [{"id": f"{id_}_s", "instructions": "Do it."}])
    return "add_task", {"id": id_, "title": id_, "steps": steps, **more}


async def run(planning: Planner) -> list[Event]:
    async with aclosing(planning.execute()) as events:
        return [event async for event in events]


def test_the_prompts_and_tools_of_a_planner_are_short(scripted: Any, context: RunContext) -> None:
    from coatcheck.runtime._plan_prompts import (
        CREATE_TASK,
        FINISH_PLAN,
        REMOVE_TASK,
        TASK,
        planning_prompt,
    )

    defined = [[each.name, each.description, each.parameters] for each in (TASK, REMOVE_TASK)]
    defined += [[each.name, each.description, each.parameters] for each in (FINISH_PLAN,)]
    one = [CREATE_TASK.name, CREATE_TASK.description, CREATE_TASK.parameters]

    assert estimate_tokens(planning_prompt(is_single=False, may_look=True)) <= 450
    assert estimate_tokens(dumps(defined).decode()) <= 450
    assert estimate_tokens(dumps(one).decode()) <= 350


async def test_the_model_is_told_tools_with_arguments_keys_of_inputs_and_the_schema(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([add("a"), FINISH])
    schema = {"type": "object", "required": ["n"]}
    planning = planner(
        context, script, inputs={"region": "secret EU"}, output_schema=schema, system_prompt="Hi."
    )

    await run(planning)

    said = script.first()
    assert said.startswith("# Objective\nFind out.\n")
    assert "- fetch(url*, retries): Fetch a page. Over the net." in said
    assert "- input:region" in said
    assert "secret" not in said
    assert '{"type":"object","required":["n"]}' in said
    assert script.system().startswith("Hi.\n\n---\n\nYou plan how an objective is reached")


async def test_only_planning_tools_are_offered_until_the_plan_is_made(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([add("a"), FINISH])

    await run(planner(context, script))

    names = [tool.name for tool in script.offers[0].function_tools]
    assert names == ["add_task", "remove_task", "finish_plan"]
    assert [info.model_settings["tool_choice"] for info in script.offers] == ["required"] * 2


async def test_a_plan_of_one_task_is_asked_for_by_its_tool(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([("create_task", {"title": "t", "steps": [STEP]})])

    await run(planner(context, script, single_task=True))

    assert [tool.name for tool in script.offers[0].function_tools] == ["create_task"]
    assert script.offers[0].model_settings["tool_choice"] == ["create_task"]


async def test_planning_tools_give_and_take_pointers_that_the_plan_then_names(
    scripted: Any, context: RunContext
) -> None:
    counted: list[int] = []

    async def resolve(brand: str, bank: Bank) -> object:
        """Find products."""
        return await bank.put([f"{brand}-{at}" for at in range(847)], kind="product-set")

    def count(ids: list[str]) -> int:
        """Count ids."""
        counted.append(len(ids))
        return len(ids)

    def pointer(messages: Any) -> str:
        returned = [p.content for m in messages for p in m.parts if p.part_kind == "tool-return"]
        return str(json.loads(returned[0])["pointer"])

    def plan(messages: Any) -> object:
        steps = [{"id": "a_s", "instructions": f"Raise the prices of {pointer(messages)}."}]
        return [add("a", steps=steps), FINISH]

    def count_them(messages: Any) -> object:
        return "count", {"ids": pointer(messages)}

    script = scripted([("resolve", {"brand": "b"}), count_them, plan])
    planning = planner(context, script, planning_tools=[resolve, count])

    events = await run(planning)

    assert counted == [847]
    assert planning.plan is not None
    instructions = planning.plan.tasks[0].steps[0].instructions
    assert instructions.startswith("Raise the prices of ps-")
    named = instructions.removeprefix("Raise the prices of ").removesuffix(".")
    assert len(await context.bank.get(named, list[str])) == 847
    told = [each.name for each in events if isinstance(each, ToolCallUpdate)]
    assert told == ["resolve", "count", "add_task", "finish_plan"]
    assert "Look with the other tools" in script.system()


async def test_how_far_a_step_is_counts_for_nothing_where_a_planner_says_it(
    scripted: Any, context: RunContext
) -> None:
    state = {"completed": True, "startTime": "2026-05-07T00:00:00Z", "logs": ["?"], "items": 3}
    script = scripted([add("a", steps=[{**STEP, **state}], completed=True, error="?"), FINISH])
    planning = planner(context, script)

    await run(planning)

    assert planning.plan is not None
    (task,) = planning.plan.tasks
    assert (task.completed, task.error) == (False, None)
    assert (task.steps[0].completed, task.steps[0].start_time, task.steps[0].items) == (
        False,
        None,
        None,
    )


@pytest.mark.parametrize("schema", ["no json", "[1]", {"type": "nothing known"}])
async def test_a_schema_that_is_none_is_dropped_and_told_of(
    scripted: Any, context: RunContext, schema: object
) -> None:
    steps = [{**STEP, "output_schema": schema, "per_item_schema": {"type": "object"}}]
    script = scripted([add("a", steps=steps), FINISH])
    planning = planner(context, script)

    events = await run(planning)

    assert planning.plan is not None
    (step,) = planning.plan.tasks[0].steps
    assert step.output_schema is None
    assert step.per_item_schema == {"type": "object"}
    (warning,) = [each for each in events if isinstance(each, LogUpdate)]
    assert warning.content.startswith("the output_schema of step 's1' was dropped:")


async def test_a_model_that_talks_in_between_is_reminded(
    scripted: Any, context: RunContext
) -> None:
    script = scripted(["Well.", "Hm.", add("a"), "And?", "So.", FINISH])
    planning = planner(context, script)

    await run(planning)

    assert planning.plan is not None
    said = [str(part) for part in script.asked[-1][2].parts]
    assert "Go on by calling a tool" in said[0]


async def test_an_unknown_tool_is_answered_with_those_that_there_are(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([("fetch", {"url": "x"}), add("a"), FINISH])
    planning = planner(context, script)

    await run(planning)

    assert planning.plan is not None
    failure = json.loads(script.returned()[0])
    assert failure["error"] == "not-found"
    assert "add_task, remove_task, finish_plan" in failure["hint"]


async def test_a_provider_that_fails_ends_the_planning_in_its_own_words(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([OSError("no route")])
    planning = planner(context, script)

    await run(planning)

    assert planning.plan is None
    assert planning.error == "The model 'scripted' failed: OSError: no route"


@pytest.mark.parametrize(("calls", "is_planned"), [(3, False), (4, True)])
async def test_planning_takes_max_calls_requests_at_most(
    scripted: Any, context: RunContext, calls: int, is_planned: bool
) -> None:
    script = scripted([add("a"), add("b"), add("c"), FINISH])
    planning = planner(context, script, max_calls=calls)

    await run(planning)

    assert (planning.plan is not None) is is_planned
    assert planning.error == (None if is_planned else "it was not finished in 3 requests")


async def test_planning_ends_where_its_tokens_are_used_up(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([add("a"), FINISH])
    planning = planner(context, script, max_token_limit=100)

    await run(planning)

    assert len(script.asked) == 1
    assert planning.error == "its budget of 100 tokens is used up"


async def test_refusals_of_one_task_do_not_count_for_another(
    scripted: Any, context: RunContext
) -> None:
    bad = [add(id_, steps=[]) for id_ in ("a", "b", "a", "b")]
    script = scripted([*bad, add("a"), add("b"), FINISH])
    planning = planner(context, script)

    events = await run(planning)

    assert planning.plan is not None
    assert [each.task.id for each in events if isinstance(each, TaskUpdate)] == ["a", "b"]


async def test_a_run_that_was_cancelled_plans_nothing(scripted: Any, context: RunContext) -> None:
    context.cancel("enough")

    with pytest.raises(RunCancelledError, match="enough"):
        await run(planner(context, scripted([])))


@pytest.mark.parametrize("name", ["max_steps", "max_calls"])
def test_a_bound_of_nothing_is_refused(scripted: Any, context: RunContext, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be 1 or more"):
        planner(context, scripted([]), **{name: 0})


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=20) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
FIELDS = st.sampled_from(["id", "title", "dependsOn", "depends_on", "completed", "outputSchema"])
STEPS = st.lists(
    PARTS | st.dictionaries(FIELDS | st.sampled_from(["tools", "mode", "instructions"]), PARTS),
    max_size=4,
)


async def _tell(event: Event) -> None:
    pass


@given(task=st.dictionaries(FIELDS, PARTS), steps=STEPS | PARTS, name=st.sampled_from([0, 1, 2]))
async def test_whatever_a_model_plans_is_taken_as_a_plan_that_can_be_run_or_refused_shortly(
    task: dict[str, object], steps: object, name: int
) -> None:
    draft = Draft(_tell, AgentMemory(), inputs=["b"], tools=["fetch"], max_steps=3)
    tool = draft.tools()[name]

    reply = json.loads(await tool.call({**task, "steps": steps}))

    assert reply["status"] in {
        "task_added",
        "validation_failed",
        "plan_finished",
    }
    assert (reply["status"] == "task_added") is (len(draft.plan.tasks) == 1)
    assert not any(step.completed for each in draft.plan.tasks for step in each.steps)
    assert len(json.dumps(reply)) < 6_000


@pytest.mark.parametrize("text", ["[" * 5_000 + "]" * 5_000, '{"id": 1', "null", '"t1"', "{}"])
async def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    draft = Draft(_tell, AgentMemory(), inputs=[], tools=[], max_steps=3)

    reply = json.loads(await draft.tools()[0].call(text))

    assert reply["status"] == "validation_failed"
    assert len(reply["errors"][0]) < 300
