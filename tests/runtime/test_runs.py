"""What the history of a run shows stays while it goes on: executors work in a run of the bank."""

import json
import re
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck import Artifact, Bank, Limits
from coatcheck.bank.collection import collect
from coatcheck.errors import ExpiredPointerError
from coatcheck.runtime import (
    Agent,
    ParallelTaskExecutor,
    RunContext,
    Step,
    StepExecutor,
    Task,
    TaskExecutor,
    TaskPlan,
)
from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.testing import ManualClock

TEN_MINUTES = 600.0
POINTER = re.compile(r"art:[0-9a-f-]{36}")


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def plan(*steps: Step) -> TaskPlan:
    return TaskPlan(title="P", tasks=[Task(id="t", title="T", steps=list(steps))])


async def leases(store: Store) -> list[str]:
    return [key async for key in store.keys("s/default/leases/")]


@pytest.fixture(params=["memory", "file", "redis", "s3"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    from coatcheck.stores import ObjectStore, RedisStore

    store: Store
    if request.param == "redis":
        store = RedisStore(request.getfixturevalue("redis_url"))
    elif request.param == "s3":
        store = ObjectStore(request.getfixturevalue("s3").address(tmp_path.name))
    else:
        store = MemoryStore() if request.param == "memory" else FileStore(tmp_path / "store")
    yield store
    await store.close()


async def test_two_hours_with_a_ttl_of_ten_minutes_keep_every_pointer_that_a_history_shows(
    any_store: Store, scripted: Any, run: Any
) -> None:
    clock = ManualClock()
    bank = Bank(any_store, limits=Limits(scope_bytes=200_000), clock=clock)
    context = RunContext(bank)
    before = await bank.put("from before", ttl_seconds=TEN_MINUTES)
    read: list[bool] = []

    async def report(number: int, bank: Bank) -> Artifact:
        return await bank.put(f"{number}," * 5_000, ttl_seconds=TEN_MINUTES)

    async def pass_time() -> str:
        clock.advance(TEN_MINUTES)
        await collect(any_store, clock=clock)
        return "later"

    def look_back(messages: list[Any]) -> list[tuple[str, object]]:
        shown = dict.fromkeys(POINTER.findall("".join(script.returned())))
        read.append(len(shown) == 12)
        return [
            ("retrieve_context", {"artifactId": each, "limit": 9})
            for each in (before.pointer, *shown)
        ]

    turns: list[Any] = [("retrieve_context", {"artifactId": before.pointer})]
    for number in range(12):
        turns += [[("report", {"number": number})], ("pass_time", {})]
    script = scripted([*turns, look_back, finish("done")])
    executor = ParallelTaskExecutor(
        plan=plan(Step(id="s", instructions="Do it.", output_schema={})),
        context=context,
        model=script.model,
        tools=[report, pass_time],
        max_step_iterations=40,
    )

    await run(executor)

    assert await executor.get_final_result() == "done"
    assert read == [True]
    windows = [json.loads(reply) for reply in script.returned()[-13:]]
    assert [each.get("error") for each in windows] == [None] * 13
    assert await leases(any_store) == []
    clock.advance(1)
    with pytest.raises(ExpiredPointerError):
        await bank.get(before.pointer)


async def test_an_agent_takes_one_lease_with_all_that_goes_on_within(scripted: Any) -> None:
    store = MemoryStore()
    context = RunContext(Bank(store), run_name="review")
    seen: list[list[str]] = []
    runs: list[str | None] = []

    async def look(context: RunContext) -> str:
        seen.append(await leases(store))
        runs.append(context.bank.current_run)
        return "seen"

    async def ask_another(context: RunContext) -> object:
        step = Step(id="s", instructions="Sub.", output_schema={})
        sub = StepExecutor(
            task=Task(id="t", steps=[step]),
            step=step,
            context=context.copy(),
            model=script.model,
            tools=[look],
        )
        async with aclosing(sub.execute()) as events:
            async for _ in events:
                pass
        return await sub.get_result()

    script = scripted(
        {
            "Sub.": [("look", {}), finish("sub")],
            "Main.": [[("look", {}), ("ask_another", {})], finish("main")],
        }
    )
    agent = Agent(
        objective="O",
        model=script.model,
        task=Task(id="t", steps=[Step(id="s", instructions="Main.", output_schema={})]),
        tools=[look, ask_another],
    )
    outside: set[str | None] = set()

    async with aclosing(agent.execute(context)) as events:
        async for _ in events:
            outside.add(context.bank.current_run)

    assert agent.get_results() == "main"
    assert [len(each) for each in seen] == [1, 1]
    assert seen[0] == seen[1]
    assert runs == ["review", "review"]
    assert outside == {None}, "whoever reads the events is not in the run"
    assert await leases(store) == []


async def test_an_executor_in_a_run_of_the_host_takes_no_lease_of_its_own(
    scripted: Any, run: Any
) -> None:
    store = MemoryStore()
    bank = Bank(store)
    seen: list[tuple[int, str | None]] = []

    async def look(bank: Bank) -> str:
        seen.append((len(await leases(store)), bank.current_run))
        return "seen"

    script = scripted([("look", {}), finish(1)])
    task = Task(id="t", steps=[Step(id="s", instructions="Do it.", output_schema={})])
    executor = TaskExecutor(task=task, context=RunContext(bank), model=script.model, tools=[look])

    async with bank.run("mine"):
        await run(executor)

    assert seen == [(1, "mine")]


async def test_a_run_that_is_resumed_has_the_name_that_it_had(
    scripted: Any, run: Any, tmp_path: Any
) -> None:
    names: list[str | None] = []

    async def look(bank: Bank) -> str:
        names.append(bank.current_run)
        return "seen"

    def steps() -> TaskPlan:
        return plan(Step(id="s", instructions="Do it.", output_schema={}))

    both: list[Any] = [[("look", {}), RuntimeError("lost")], [("look", {}), finish(1)]]
    for turns in both:
        script = scripted(turns)
        async with RunContext.open(tmp_path / "store") as context:
            executor = ParallelTaskExecutor(
                plan=steps(), context=context, model=script.model, tools=[look], resumable=True
            )
            await run(executor)
        async with RunContext.open(tmp_path / "other") as context:
            script = scripted(turns)
            agent = Agent(
                objective="O", model=script.model, plan=steps(), tools=[look], resumable=True
            )
            async with aclosing(agent.execute(context)) as events:
                async for _ in events:
                    pass

    assert len(names) == 4
    assert len(set(names)) == 1
    assert str(names[0]).startswith("plan-")


async def test_two_runs_of_one_scope_do_not_hold_each_others_results(
    scripted: Any, run: Any
) -> None:
    clock = ManualClock()
    store = MemoryStore()
    bank = Bank(store, clock=clock)
    pointers: list[str] = []

    async def put(bank: Bank) -> str:
        pointers.append((await bank.put("x" * 2_000, ttl_seconds=TEN_MINUTES)).pointer)
        return "put"

    async def pass_time() -> str:
        clock.advance(TEN_MINUTES + 1)
        await collect(store, clock=clock)
        return "later"

    both: list[Any] = [[("put", {}), finish(1)], [("pass_time", {}), finish(1)]]
    for turns in both:
        script = scripted(turns)
        step = Step(id="s", instructions="Do it.", output_schema={})
        task = Task(id="t", steps=[step])
        await run(
            TaskExecutor(
                task=task, context=RunContext(bank), model=script.model, tools=[put, pass_time]
            )
        )

    with pytest.raises(ExpiredPointerError):
        await bank.get(pointers[0])


async def test_a_run_whose_tools_never_call_the_bank_keeps_its_lease(
    scripted: Any, run: Any
) -> None:
    clock = ManualClock()
    store = MemoryStore()
    bank = Bank(store, clock=clock)
    artifact = await bank.put("shown", ttl_seconds=TEN_MINUTES)

    async def wait() -> str:
        clock.advance(TEN_MINUTES)
        return "waited"

    async def collect_all() -> str:
        await collect(store, clock=clock)
        return "collected"

    look = ("retrieve_context", {"artifactId": artifact.pointer})
    script = scripted([look, *[("wait", {})] * 6, ("collect_all", {}), finish(1)])
    task = Task(id="t", steps=[Step(id="s", instructions="Do it.", output_schema={})])
    found: list[str] = []

    async def accept(_result: object) -> str | None:
        found.append(str(await bank.get(artifact.pointer)))
        return None

    await run(
        TaskExecutor(
            task=task,
            context=RunContext(bank),
            model=script.model,
            tools=[wait, collect_all],
            accept_result=accept,
        )
    )

    assert found == ["shown"]
