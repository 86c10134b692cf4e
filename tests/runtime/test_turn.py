"""The calls of a turn: what they bank has the same pointer when a step is run again."""

import re
from typing import Any

import pytest

from coatcheck import Limits
from coatcheck.bank import Call, read_journal
from coatcheck.runtime import (
    ParallelTaskExecutor,
    RunContext,
    RunTool,
    Step,
    StepExecutor,
    Task,
    TaskPlan,
)

POINTER = re.compile(r"art:[0-9a-f-]{36}")


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def pointers(script: Any) -> list[str]:
    return [POINTER.findall(reply)[0] for reply in script.returned()]


async def run_again(
    times: int, scripted: Any, run: Any, address: object, tools: Any, calls: Any
) -> list[list[str]]:
    """Run a plan whose step always fails, and return the pointers that each run was shown."""
    shown: list[list[str]] = []
    for _ in range(times):
        script = scripted([*calls, RuntimeError("lost")])
        async with RunContext.open(str(address)) as context:
            step = Step(id="s", instructions="Do it.", output_schema={})
            executor = ParallelTaskExecutor(
                plan=TaskPlan(title="P", tasks=[Task(id="t", title="T", steps=[step])]),
                context=context,
                model=script.model,
                tools=tools,
                resumable=True,
            )
            await run(executor)
            shown.append(pointers(script))
    return shown


def rows(count: int) -> list[int]:
    return list(range(count))


async def lines(count: int) -> Any:
    for number in range(count):
        yield f"line {number}\n"


def fail(count: int) -> None:
    raise RuntimeError("x" * count)


@pytest.mark.parametrize("tool", [rows, lines, fail])
async def test_a_step_that_is_run_again_banks_to_the_same_pointers(
    tool: Any, scripted: Any, run: Any, tmp_path: Any
) -> None:
    name = tool.__name__
    calls = [
        (name, {"count": 60_000}),
        [(name, {"count": 60_000}), (name, {"count": 60_001})],
    ]

    first, second = await run_again(2, scripted, run, tmp_path / "store", [tool], calls)

    assert first == second
    assert len(set(first)) == 3, "each call has a pointer of its own"


async def test_another_result_of_the_same_call_has_another_pointer(
    scripted: Any, run: Any, tmp_path: Any
) -> None:
    results = ["a" * 60_000, "b" * 60_000, "a" * 60_000]

    def log() -> str:
        return results.pop(0)

    shown = await run_again(3, scripted, run, tmp_path / "store", [RunTool(log)], [("log", {})])

    assert shown[0] == shown[2]
    assert shown[0] != shown[1]


async def test_two_runs_in_one_scope_do_not_share_pointers(scripted: Any, run: Any) -> None:
    shown: list[list[str]] = []
    first = RunContext()
    for context in (first, RunContext(first.bank)):
        script = scripted([("rows", {"count": 60_000}), finish(1)])
        step = Step(id="s", instructions="Do it.", output_schema={})
        task = Task(id="t", title="T", steps=[step])
        await run(
            ParallelTaskExecutor(
                plan=TaskPlan(title="P", tasks=[task]),
                context=context,
                model=script.model,
                tools=[rows],
            )
        )
        shown.append(pointers(script))

    assert shown[0] != shown[1]


def journal_of(path: Any) -> list[Call]:
    return list(read_journal(path))


async def run_turn(
    context: RunContext, scripted: Any, run: Any, calls: Any, limits: Limits | None = None
) -> list[str]:
    """Return the replies to the calls of one turn."""
    script = scripted([calls, finish(1)])
    step = Step(id="s", instructions="Do it.", output_schema={})
    executor = StepExecutor(
        task=Task(id="t", steps=[step]),
        step=step,
        context=context,
        model=script.model,
        tools=[text, rows, fail],
        limits=limits,
    )
    await run(executor)
    return script.returned()  # type: ignore[no-any-return]


def text(letter: str, count: int) -> str:
    return letter * count


async def test_the_largest_replies_of_a_turn_are_offloaded_until_the_rest_fits(
    scripted: Any, run: Any, tmp_path: Any
) -> None:
    path = tmp_path / "calls.jsonl"
    calls = [
        ("text", {"letter": letter, "count": count})
        for letter, count in (("a", 3_000), ("b", 9_000), ("c", 5_000))
    ]
    async with RunContext.open("memory:", limits=Limits(turn_bytes=9_000), journal=path) as context:
        replies = await run_turn(context, scripted, run, calls)
        pointer = POINTER.findall(replies[1])[0]
        kept = await context.bank.get(pointer)

    assert replies[0] == "a" * 3_000
    assert kept == "b" * 9_000
    assert replies[2] == "c" * 5_000
    noted = [call for call in journal_of(path) if call.verb == "tool"]
    assert [call.size_bytes for call in noted] == [3_000, 9_000, 5_000], "each call is noted once"
    assert [call.pointers_out for call in noted] == [(), (pointer,), ()]
    assert noted[1].shown_tokens < 300 < noted[1].tokens


@pytest.mark.parametrize(("turn_bytes", "is_offloaded"), [(6_000, False), (5_999, True)])
async def test_a_turn_of_just_its_bytes_stays_and_one_byte_less_does_not(
    turn_bytes: int, is_offloaded: bool, context: RunContext, scripted: Any, run: Any
) -> None:
    calls = [("text", {"letter": letter, "count": 3_000}) for letter in "ab"]

    replies = await run_turn(context, scripted, run, calls, Limits(turn_bytes=turn_bytes))

    assert [reply == letter * 3_000 for reply, letter in zip(replies, "ab", strict=True)] == [
        not is_offloaded,
        True,
    ]


async def test_what_our_own_tools_reply_counts_in_a_turn_and_is_never_offloaded(
    context: RunContext, scripted: Any, run: Any
) -> None:
    await context.memory.set("shared:x", "m" * 5_000)
    calls: list[Any] = [
        ("memory_read", {"keys": ["shared:x"]}),
        ("text", {"letter": "a", "count": 3_000}),
        ("unknown", {}),
    ]

    replies = await run_turn(context, scripted, run, calls, Limits(turn_bytes=6_000))

    assert "m" * 5_000 in replies[0]
    assert POINTER.search(replies[1])
    assert "was not found" in replies[2]


async def test_a_call_is_noted_once_whether_or_not_turns_are_bounded(
    scripted: Any, run: Any, tmp_path: Any
) -> None:
    calls = [
        ("rows", {"count": 60_000}),
        ("fail", {"count": 10}),
        ("fail", {"count": 60_000}),
        ("text", {"letter": "a", "count": 10}),
    ]
    told: list[list[tuple[str | None, bool, int]]] = []
    for turn_bytes in (None, 1_000_000):
        path = tmp_path / f"{turn_bytes}.jsonl"
        async with RunContext.open(
            "memory:", limits=Limits(turn_bytes=turn_bytes), journal=path
        ) as context:
            await run_turn(context, scripted, run, calls)
        tools = [call for call in journal_of(path) if call.verb == "tool"]
        told.append(sorted((call.tool or "", call.is_error, call.size_bytes) for call in tools))

    assert told[0] == told[1]
    assert [(tool, is_error) for tool, is_error, _ in told[0]] == [
        ("fail", True),
        ("fail", True),
        ("rows", False),
        ("text", False),
    ]


async def test_the_journal_keeps_the_pointers_that_a_call_of_a_bounded_turn_was_given(
    scripted: Any, run: Any, tmp_path: Any
) -> None:
    path = tmp_path / "calls.jsonl"
    async with RunContext.open("memory:", limits=Limits(turn_bytes=500), journal=path) as context:
        given = (await context.bank.put("z")).pointer
        await run_turn(context, scripted, run, [("text", {"letter": given, "count": 3_000})])

    (noted,) = [call for call in journal_of(path) if call.verb == "tool"]
    assert noted.pointers_in == (given,)
    assert len(noted.pointers_out) == 1


async def test_a_turn_that_is_made_to_fit_has_the_same_pointers_when_it_is_replayed(
    scripted: Any, run: Any
) -> None:
    context = RunContext(run_name="replayed")
    calls = [("text", {"letter": "a", "count": 3_000})]

    shown = [
        await run_turn(context, scripted, run, calls, Limits(turn_bytes=1_000)) for _ in range(2)
    ]

    assert shown[0] == shown[1]
    assert POINTER.search(shown[0][0])
