import json
from typing import Any

import pytest

from coatcheck.runtime import RunContext, StepResult
from coatcheck.runtime._result import reported_error

ROWS = {"type": "array", "items": {"type": "object", "required": ["id"]}}
UNKNOWN = "art:00000000-0000-4000-8000-000000000005"


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


async def test_a_pointer_is_taken_for_what_it_stands_for_and_held_as_it_is(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    rows = [{"id": n} for n in range(10_000)]
    artifact = await context.bank.put(rows)
    one = one_step(scripted([finish(artifact.pointer)]), output_schema=ROWS, use_finish_task=True)

    events = await run(one)

    assert await one.get_result() == rows
    entries = [await context.memory.get(key) for key in ("step:s1", "task:t1")]
    assert [entry and entry.pointer for entry in entries] == [artifact.pointer] * 2
    (result,) = [event for event in events if isinstance(event, StepResult)]
    assert result.result == artifact.pointer


async def test_a_large_result_is_banked_once_for_step_and_task(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    one = one_step(scripted(["x" * 60_000]), output_schema=None, use_finish_task=True)

    await run(one)

    step, task = [await context.memory.get(key) for key in ("step:s1", "task:t1")]
    assert step is not None
    assert task is not None
    assert step.pointer == task.pointer is not None
    assert await context.memory.get_value("task:t1") == "x" * 60_000


async def test_what_a_pointer_stands_for_is_held_to_the_schema(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    artifact = await context.bank.put([{"name": "a secret name"}])
    script = scripted([finish(artifact.pointer), finish([{"id": 1}])])
    one = one_step(script, output_schema=ROWS)

    await run(one)

    assert '\\"id\\" is a required property' in script.returned()[0]
    assert "a secret name" not in script.returned()[0]
    assert await one.get_result() == [{"id": 1}]


async def test_a_text_behind_a_pointer_is_read_as_the_structure_that_is_asked_for(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    artifact = await context.bank.put('[{"id": 1}]', content_type="application/json")
    one = one_step(scripted([finish(artifact.pointer)]), output_schema=ROWS)

    await run(one)

    assert await one.get_result() == [{"id": 1}]


async def test_a_selector_picks_the_part_that_is_the_result(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    artifact = await context.bank.put({"rows": [{"id": 1}], "other": 2})
    one = one_step(scripted([finish(f"{artifact.pointer}#/rows")]), output_schema=ROWS)

    await run(one)

    assert await one.get_result() == [{"id": 1}]


async def test_an_unknown_pointer_is_a_refusal(one_step: Any, scripted: Any, run: Any) -> None:
    script = scripted([finish(UNKNOWN), finish([])])

    await run(one_step(script, output_schema=ROWS))

    assert json.loads(script.returned()[0])["error"] == "unknown-pointer"


async def test_pointers_inside_a_result_stay_unless_the_schema_asks_for_their_values(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    artifact = await context.bank.put([1, 2, 3])
    actions = {"properties": {"of": {"type": "string"}}}
    one = one_step(scripted([finish({"of": artifact.pointer})]), output_schema=actions)
    await run(one)
    assert await one.get_result() == {"of": artifact.pointer}

    values = {"properties": {"of": {"type": "array"}}}
    one = one_step(scripted([finish({"of": artifact.pointer})]), output_schema=values)
    await run(one)
    assert await one.get_result() == {"of": [1, 2, 3]}


async def test_a_text_step_may_end_with_a_pointer(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    artifact = await context.bank.put({"n": 1})
    for said, result in [
        (f" {artifact.pointer}\n", {"n": 1}),
        (f"{artifact.pointer}#/n", 1),
        (f"{artifact.pointer}#/missing", f"{artifact.pointer}#/missing"),
        (UNKNOWN, UNKNOWN),
        (f"See {artifact.pointer}", f"See {artifact.pointer}"),
    ]:
        one = one_step(scripted([said]), output_schema=None)

        await run(one)

        assert await one.get_result() == result


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"error": "broken"}, "broken"),
        ({"error": "broken", "n": 1}, "broken"),
        ({"error": ""}, None),
        ({"error": 5}, None),
        ({"n": 1}, None),
        ([{"error": "a"}, {"error": "b"}], "a"),
        ([{"error": "a"}, {"n": 1}], None),
        ([{"error": "a"}, "b"], None),
        ([], None),
        ("error", None),
    ],
)
def test_a_result_that_only_tells_of_an_error_is_one(value: object, error: str | None) -> None:
    assert reported_error(value) == error


async def test_a_step_that_reports_an_error_has_failed(
    context: RunContext, one_step: Any, scripted: Any, run: Any
) -> None:
    one = one_step(scripted([finish({"error": "no such page"})]), use_finish_task=True)

    await run(one)

    assert await one.get_result() == {"error": "the step reported: no such page"}
    assert not await context.memory.has("task:t1")


async def test_null_is_a_result_where_the_schema_takes_it(
    one_step: Any, scripted: Any, run: Any
) -> None:
    one = one_step(scripted([finish(None)]), output_schema={"type": ["integer", "null"]})

    events = await run(one)

    assert await one.get_result() is None
    assert events[-1].step.completed
