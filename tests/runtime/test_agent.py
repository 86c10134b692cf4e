"""What an agent gives, and how its artifacts are set."""

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Bank, Limits
from coatcheck.errors import InvalidPlanError, NoPlanError, RunCancelledError
from coatcheck.mirror import Verbatim
from coatcheck.runtime import (
    Agent,
    ArtifactsConfig,
    Event,
    LogUpdate,
    RunContext,
    Step,
    Task,
    TaskPlan,
    TaskUpdate,
)
from coatcheck.stores import FileStore, MemoryStore
from coatcheck.tools import plan_tools

ANY: dict[str, object] = {}
TRIO = ["storeArtifact", "getArtifact", "listArtifacts"]


@pytest.fixture
def context() -> RunContext:
    return RunContext(Bank(MemoryStore()))


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def one_step(*more: Step) -> Task:
    return Task(id="t", steps=[*more, Step(id="s", instructions="Do <t>.", output_schema=ANY)])


def plan(*ids: str, **depends_on: list[str]) -> TaskPlan:
    return TaskPlan(
        tasks=[
            Task(
                id=id_,
                title=f"Title of {id_}",
                depends_on=depends_on.get(id_, []),
                steps=[Step(id=f"{id_}_s", instructions=f"Do <{id_}>.", output_schema=ANY)],
            )
            for id_ in ids
        ]
    )


def agent(script: Any, **options: Any) -> Agent:
    given: dict[str, Any] = {"objective": "The objective.", "model": script.model, **options}
    return Agent(**given)


async def run(agent: Agent, context: RunContext | None = None) -> list[Event]:
    async with aclosing(agent.execute(context)) as events:
        return [event async for event in events]


def offered(script: Any) -> list[str]:
    return [tool.name for tool in script.offers[0].function_tools]


def dump() -> str:
    """Return a long text."""
    return "x" * 100_000


async def test_a13_a18_enabled_offloads_by_its_numbers_and_gives_the_three_tools(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([("dump", ANY), finish(1)])
    artifacts = ArtifactsConfig(enabled=True, max_tool_output_bytes=1_024, preview_chars=50)

    await run(agent(script, task=one_step(), tools=[dump], artifacts=artifacts), context)

    assert [name for name in offered(script) if name in TRIO] == TRIO
    envelope = json.loads(script.returned()[0])
    assert envelope["preview"].startswith("x" * 50 + " …")
    assert envelope["sizeBytes"] == 100_000
    assert await context.bank.get(envelope["pointer"]) == dump()


async def test_a19_a_small_result_is_shown_as_it_is(scripted: Any, context: RunContext) -> None:
    def hi() -> str:
        return "hi"

    script = scripted([("hi", ANY), finish(1)])
    artifacts = ArtifactsConfig(enabled=True, max_tool_output_bytes=1_024)

    await run(agent(script, task=one_step(), tools=[hi], artifacts=artifacts), context)

    assert script.returned() == ["hi"]


@pytest.mark.parametrize("limits", [None, Limits(per_tool={"dump": 0}, turn_bytes=10)])
async def test_a20_explicitly_not_enabled_offloads_nothing(
    scripted: Any, context: RunContext, limits: Limits | None
) -> None:
    script = scripted([("dump", ANY), finish(1)])
    artifacts = ArtifactsConfig(enabled=False)

    await run(
        agent(script, task=one_step(), tools=[dump], artifacts=artifacts, limits=limits), context
    )

    assert script.returned() == [dump()]
    assert not set(TRIO) & set(offered(script))


async def test_a21_what_store_artifact_replies_is_not_offloaded_again(
    scripted: Any, context: RunContext
) -> None:
    stored = "storeArtifact", {"name": "logs", "value": "y" * 100}
    script = scripted([stored, ("getArtifact", {"pointerOrName": "logs"}), finish(1)])
    artifacts = ArtifactsConfig(enabled=True, max_tool_output_bytes=10)

    await run(agent(script, task=one_step(), artifacts=artifacts), context)

    reply, text = script.returned()
    assert set(json.loads(reply)) == {"pointer", "preview", "sizeBytes", "name"}
    assert text == "y" * 100


@pytest.mark.parametrize("artifacts", [None, ArtifactsConfig(), ArtifactsConfig(preview_chars=9)])
async def test_omitted_the_three_tools_are_off_and_offloading_is_on(
    scripted: Any, context: RunContext, artifacts: ArtifactsConfig | None
) -> None:
    script = scripted([("dump", ANY), finish(1)])

    await run(agent(script, task=one_step(), tools=[dump], artifacts=artifacts), context)

    assert not set(TRIO) & set(offered(script))
    assert "retrieve_context" in offered(script)
    assert json.loads(script.returned()[0])["sizeBytes"] == 100_000


@pytest.mark.parametrize(("size", "is_offloaded"), [(999, False), (1_000, True)])
async def test_the_numbers_of_artifacts_come_before_the_limits(
    scripted: Any, context: RunContext, size: int, is_offloaded: bool
) -> None:
    def some() -> str:
        return "z" * size

    script = scripted([("some", ANY), finish(1)])
    artifacts = ArtifactsConfig(max_tool_output_bytes=1_000)
    limits = Limits(inline_bytes=5)

    await run(
        agent(script, task=one_step(), tools=[some], artifacts=artifacts, limits=limits), context
    )

    assert (script.returned() != ["z" * size]) is is_offloaded


async def test_an_impossible_number_of_artifacts_is_refused(
    scripted: Any, context: RunContext
) -> None:
    artifacts = ArtifactsConfig(max_tool_output_bytes=0)

    with pytest.raises(ValueError, match="inline_bytes must be 1 or more"):
        await run(agent(scripted([]), task=one_step(), artifacts=artifacts), context)


async def test_the_result_of_one_task_is_that_of_the_agent(
    scripted: Any, context: RunContext
) -> None:
    one = agent(scripted([finish({"n": 1})]), task=one_step())
    assert one.get_results() is None

    await run(one, context)

    assert one.get_results() == {"n": 1}
    assert one.plan is not None
    assert [task.completed for task in one.plan.tasks] == [True]


async def test_without_a_context_the_agent_takes_one_of_its_own(scripted: Any) -> None:
    one = agent(scripted([finish(5)]), task=one_step())

    await run(one)

    assert one.get_results() == 5


async def test_a_task_that_failed_gives_no_result(scripted: Any, context: RunContext) -> None:
    one = agent(scripted(["no call"]), task=one_step())

    events = await run(one, context)

    assert one.get_results() is None
    assert [each.event for each in events if isinstance(each, TaskUpdate)][-1] == "step_failed"


async def test_of_several_tasks_one_more_request_makes_the_result(
    scripted: Any, context: RunContext
) -> None:
    turns = {"<a>": [finish("alpha")], "<b>": [finish("beta")], "# Objective": [" both. "]}
    script = scripted(turns)
    one = agent(script, plan=plan("a", "b"), system_prompt="Be kind.")

    await run(one, context)

    assert one.get_results() == "both."
    assert "The objective." in script.first("# Objective")
    assert '"alpha"' in script.first("# Objective")
    assert script.system("# Objective").startswith("Be kind.\n\n---\n\n")


async def test_long_results_come_into_that_request_as_windows_and_pointers(
    scripted: Any, context: RunContext
) -> None:
    turns = {"<a>": [finish(dump())], "<b>": [finish(dump())], "# Objective": ["both"]}
    script = scripted(turns)

    await run(agent(script, plan=plan("a", "b")), context)

    assert len(script.first("# Objective")) < 51_000
    assert '"pointer":"art:' in script.first("# Objective")


async def test_where_that_request_fails_the_result_is_all_results_in_sections(
    scripted: Any, context: RunContext
) -> None:
    turns = {"<a>": [finish("alpha")], "<b>": [finish("beta")], "# Objective": [OSError("gone")]}
    one = agent(scripted(turns), plan=plan("a", "b"))

    events = await run(one, context)

    result = one.get_results()
    assert isinstance(result, str)
    assert "Title of a (task:a)" in result
    assert "alpha" in result
    assert "beta" in result
    warnings = [each for each in events if isinstance(each, LogUpdate)]
    assert "gone" in next(each.content for each in warnings if each.severity == "warning")


async def test_where_that_request_says_nothing_the_result_is_all_results_in_sections(
    scripted: Any, context: RunContext
) -> None:
    turns = {"<a>": [finish("alpha")], "<b>": [finish("beta")], "# Objective": ["  "]}
    one = agent(scripted(turns), plan=plan("a", "b"))

    await run(one, context)

    assert "beta" in str(one.get_results())


async def test_of_several_tasks_that_all_failed_there_is_no_result(
    scripted: Any, context: RunContext
) -> None:
    script = scripted({"<a>": ["no call"], "<b>": ["no call"]})
    one = agent(script, plan=plan("a", "b"))

    await run(one, context)

    assert one.get_results() is None
    assert len(script.asked) == 2


async def test_of_very_many_results_that_request_is_shown_the_last_fifty(
    scripted: Any, context: RunContext
) -> None:
    ids = [f"t{at}" for at in range(51)]
    turns = {f"<{id_}>": [finish(f"result of {id_}")] for id_ in ids}
    script = scripted({**turns, "# Objective": ["all"]})
    one = agent(script, plan=plan(*ids))

    await run(one, context)

    assert one.get_results() == "all"
    assert '"result of t50"' in script.first("# Objective")
    assert '"result of t1"' in script.first("# Objective")
    assert '"result of t0"' not in script.first("# Objective")


async def test_tasks_that_failed_are_named_in_that_request(
    scripted: Any, context: RunContext
) -> None:
    turns = {
        "<a>": [finish("alpha")],
        "<b>": ["no call"],
        "<c>": [finish("gamma")],
        "# Objective": ["two of three"],
    }
    script = scripted(turns)

    await run(agent(script, plan=plan("a", "b", "c")), context)

    assert "# Tasks without a result\n- Title of b: step 'b_s' failed" in script.first(
        "# Objective"
    )


async def test_the_only_result_of_several_tasks_is_that_of_the_agent(
    scripted: Any, context: RunContext
) -> None:
    one = agent(scripted({"<a>": [finish("alpha")], "<b>": ["no call"]}), plan=plan("a", "b"))

    await run(one, context)

    assert one.get_results() == "alpha"


async def test_with_a_schema_the_result_is_the_last_tasks_and_follows_it(
    scripted: Any, context: RunContext
) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    script = scripted({"<a>": [finish("alpha")], "<b>": [finish({"n": "1"}), finish({"n": 1})]})
    one = agent(script, plan=plan("a", "b", b=["a"]), output_schema=schema)

    await run(one, context)

    assert one.get_results() == {"n": 1}
    assert len(script.asked) == 3


async def test_a_planner_without_a_plan_raises_and_nothing_is_run(
    scripted: Any, context: RunContext
) -> None:
    one = agent(scripted(["no call"] * 3))

    with pytest.raises(NoPlanError, match="called no tool 3 times") as raised:
        await run(one, context)

    assert raised.value.code == "no-plan"
    assert one.plan is None
    assert await context.memory.size() == 0


async def test_to_execute_again_is_to_plan_again(scripted: Any, context: RunContext) -> None:
    def planned(id_: str) -> tuple[str, object]:
        steps = [{"id": f"{id_}_s", "instructions": f"<{id_}>", "output_schema": ANY}]
        return "add_task", {"id": id_, "title": id_, "steps": steps}

    done = "finish_plan", {"title": "p"}
    planner = [planned("a"), done, planned("b"), done]
    one = agent(scripted({"# Objective": planner, "<a>": [finish(1)], "<b>": [finish(2)]}))

    await run(one, context)
    first = one.get_results()
    await run(one, context)

    assert (first, one.get_results()) == (1, 2)


@pytest.mark.parametrize(("steps", "is_run"), [(10, True), (11, False)])
async def test_a_chain_of_more_steps_than_max_steps_is_refused_before_it_runs(
    scripted: Any, context: RunContext, steps: int, is_run: bool
) -> None:
    chain = [
        Step(id=f"s{at}", instructions="Do it.", depends_on=[f"s{at - 1}"] if at else [])
        for at in range(steps)
    ]
    script = scripted(["done"] * steps)
    one = agent(script, task=Task(id="t", steps=chain))

    if not is_run:
        with pytest.raises(InvalidPlanError, match="max_steps=10"):
            await run(one, context)
    else:
        await run(one, context)

    assert len(script.asked) == (steps if is_run else 0)


async def test_a_step_asks_its_model_15_times_at_most(scripted: Any, context: RunContext) -> None:
    script = scripted([("memory_list", ANY)] * 15)

    await run(agent(script, task=one_step()), context)

    assert len(script.asked) == 15


async def test_an_agent_within_a_tool_shares_the_bank_of_the_run_and_not_its_memory(
    scripted: Any, context: RunContext
) -> None:
    def hand_on(messages: Any) -> object:
        return finish(pointer_in(messages))

    inner = scripted([("dump", ANY), hand_on])

    async def research(context: RunContext) -> object:
        """Have another agent look."""
        sub = agent(inner, task=one_step(), tools=[dump])
        await run(sub, context.copy())
        return sub.get_results()

    def read(messages: Any) -> object:
        # What the other agent found is long, so it is a pointer here too.
        asked = {"artifactId": pointer_in(messages), "offset": 99_990}
        return "retrieve_context", asked

    outer = scripted([("research", ANY), read, finish("read")])
    await run(agent(outer, task=one_step(), tools=[research]), context)

    assert json.loads(outer.returned()[1])["content"] == "x" * 10
    assert await context.memory.get_value("task:t") == "read"
    assert json.loads(inner.returned()[0])["sizeBytes"] == 100_000


async def test_an_agent_within_a_tool_reads_what_a_pointer_that_it_is_shown_stands_for(
    scripted: Any, context: RunContext
) -> None:
    def read(messages: Any) -> object:
        _, _, pointer = user_text(messages).partition("Read ")
        return "retrieve_context", {"artifactId": pointer, "offset": 99_995}

    inner = scripted([read, "done"])

    async def research(about: Verbatim[str], context: RunContext) -> object:
        """Have another agent read."""
        step = Step(instructions=f"Read {about}")
        sub = agent(inner, task=Task(steps=[step]))
        await run(sub, context.copy())
        return sub.get_results()

    def delegate(messages: Any) -> object:
        return "research", {"about": pointer_in(messages)}

    outer = scripted([("dump", ANY), delegate, finish("done")])
    await run(agent(outer, task=one_step(), tools=[dump, research]), context)

    assert json.loads(inner.returned()[0])["content"] == "x" * 5


async def test_planning_tools_are_offered_to_the_planner_and_not_to_the_steps(
    scripted: Any, context: RunContext
) -> None:
    steps = [{"id": "s", "instructions": "<a>"}]
    planned = [("add_task", {"id": "a", "title": "a", "steps": steps}), ("finish_plan", ANY)]
    script = scripted({"# Objective": [("dump", ANY), planned], "<a>": ["done"]})

    await run(agent(script, planning_tools=[dump]), context)

    names = [{tool.name for tool in info.function_tools} for info in script.offers]
    assert ["dump" in each for each in names] == [True, True, False]
    assert "sizeBytes" in script.returned("# Objective")[0]


def user_text(messages: Any) -> str:
    return next(str(p.content) for p in messages[0].parts if p.part_kind == "user-prompt")


def pointer_in(messages: Any) -> str:
    returned = [p.content for m in messages for p in m.parts if p.part_kind == "tool-return"]
    return str(json.loads(returned[-1])["pointer"])


async def test_a_step_hands_a_plan_of_pointers_to_the_next_which_runs_it_on_the_values(
    scripted: Any, context: RunContext
) -> None:
    got: list[list[str]] = []

    def find(word: str) -> list[str]:
        return [f"{word}-{at}" for at in range(9_000)]

    def change(ids: list[str]) -> int:
        got.append(ids)
        return len(ids)

    def store(messages: Any) -> object:
        action = {"name": "change", "ids": pointer_in(messages)}
        return "store_plan", {"title": "Change", "actions": [action]}

    def hand_on(messages: Any) -> object:
        returned = [p.content for m in messages for p in m.parts if p.part_kind == "tool-return"]
        return finish({"planId": json.loads(returned[1])["planId"]})

    def get(messages: Any) -> object:
        read = json.loads(script.returned("Carry")[0])["entries"]["step:plan"]["value"]
        return "get_plan", read

    def carry_out(messages: Any) -> object:
        (action,) = json.loads(script.returned("Carry")[1])["actions"]
        return "change", {"ids": action["ids"]}

    first = Step(id="plan", instructions="Plan it.", output_schema={"properties": {"planId": {}}})
    second = Step(id="s", instructions="Carry it out.", depends_on=["plan"], output_schema=ANY)
    script = scripted(
        {
            "Plan it": [("find", {"word": "id"}), store, hand_on],
            "Carry": [("memory_read", {"keys": ["step:plan"]}), get, carry_out, finish("done")],
        }
    )
    tools: list[Callable[..., object]] = [find, change]

    one = agent(
        script, task=Task(id="t", steps=[first, second]), tools=[*tools, *plan_tools(context.bank)]
    )
    await run(one, context)

    assert one.get_results() == "done"
    assert got == [find("id")]
    texts = [str(part) for messages in script.asked for m in messages for part in m.parts]
    assert not [text for text in texts if "id-8999" in text]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": one_step(), "plan": plan("a")}, "a task or a plan, not both"),
        ({"resumable": True}, "only with a plan"),
        ({"max_steps": 0}, "max_steps must be 1 or more"),
        ({"max_step_iterations": 0}, "max_step_iterations must be 1 or more"),
        ({"max_concurrent_agents": 0}, "max_concurrent_agents must be 1 or more"),
        ({"model": "nobody:knows"}, "nobody"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_when_the_agent_is_made(
    scripted: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        agent(scripted([]), **options)


async def test_a_circle_in_a_given_plan_is_refused_by_its_name(
    scripted: Any, context: RunContext
) -> None:
    one = agent(scripted([]), plan=plan("a", "b", a=["b"], b=["a"]))

    with pytest.raises(InvalidPlanError, match="'a' -> 'b' -> 'a'"):
        await run(one, context)


async def test_to_cancel_the_run_ends_its_agent_and_what_the_agent_waits_for(
    scripted: Any, context: RunContext
) -> None:
    ended = asyncio.Event()

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async def stop() -> str:
        context.cancel("enough")
        return "stopped"

    both = [("wait", ANY), ("stop", ANY)]
    one = agent(scripted([both]), task=one_step(), tools=[wait, stop])

    with pytest.raises(RunCancelledError, match="enough"):
        await run(one, context)

    assert ended.is_set()
    assert one.get_results() is None


async def test_who_stops_reading_stops_the_agent(scripted: Any, context: RunContext) -> None:
    ended = asyncio.Event()

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    one = agent(scripted([("wait", ANY)]), task=one_step(), tools=[wait])

    async with aclosing(one.execute(context)) as events:
        async for event in events:
            if event.type == "tool_call_update":
                break
        await asyncio.sleep(0)

    assert ended.is_set()


async def test_a_resumable_agent_does_not_ask_again_for_what_was_finished(
    scripted: Any, tmp_path: Any
) -> None:
    def resumed(script: Any) -> tuple[Agent, RunContext]:
        one = agent(script, plan=plan("a", "b", b=["a"]), resumable=True, output_schema=ANY)
        return one, RunContext(Bank(FileStore(tmp_path)))

    broken = scripted({"<a>": [finish("alpha")], "<b>": ["no call"]})
    await run(*resumed(broken))
    again = scripted({"<b>": [finish("beta")]})
    one, context = resumed(again)
    await run(one, context)

    assert one.get_results() == "beta"
    assert len(again.asked) == 1
    assert await context.memory.get_value("task:a") == "alpha"


async def test_a_tool_of_the_hosts_called_as_one_of_the_plan_tools_is_mirrored_like_any_other(
    scripted: Any, context: RunContext
) -> None:
    def get_plan(name: str) -> str:
        return name * 100_000

    script = scripted([("get_plan", {"name": "x"}), finish(1)])

    await run(agent(script, task=one_step(), tools=[get_plan]), context)

    assert json.loads(script.returned()[0])["sizeBytes"] == 100_000


async def test_a_restricted_step_has_the_plan_tools_only_where_it_names_them(
    scripted: Any, context: RunContext
) -> None:
    script = scripted([finish(1)])
    step = Step(id="s", instructions="Do <t>.", output_schema=ANY, tools=["get_plan"])
    one = agent(script, task=Task(id="t", steps=[step]), tools=plan_tools(context.bank))

    await run(one, context)

    assert "get_plan" in offered(script)
    assert "store_plan" not in offered(script)
