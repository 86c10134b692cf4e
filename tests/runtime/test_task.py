from pathlib import Path
from typing import Any

import pytest

from coatcheck.runtime import Checkpoint, RunContext, Step, Task, TaskExecutor


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


def step(id_: str, *depends_on: str, **more: Any) -> Step:
    more = {"instructions": f"<{id_}>", "output_schema": {}, **more}
    return Step(id=id_, depends_on=list(depends_on), **more)


def executor(context: RunContext, script: Any, *steps: Step, **options: Any) -> TaskExecutor:
    task = Task(id="t", title="T", steps=list(steps))
    return TaskExecutor(task=task, context=context, model=script.model, **options)


def test_a_final_step_that_is_none_is_refused(context: RunContext, scripted: Any) -> None:
    with pytest.raises(ValueError, match="'other', which is no step"):
        executor(context, scripted([]), step("s"), final_step_id="other")


async def test_a_final_step_that_others_build_on_waits_for_the_rest_only(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted({f"<{id_}>": [finish(id_)] for id_ in ("last", "after", "free")})
    steps = [step("last"), step("after", "last"), step("free")]
    one = executor(context, script, *steps, final_step_id="last")

    await run(one)

    assert all(each.completed for each in steps)
    assert await one.get_result() == "last"
    keys = [entry.key for entry in await context.memory.list()]
    assert keys.index("step:free") < keys.index("step:last") < keys.index("step:after")


async def test_steps_go_on_one_after_another_unless_they_may_at_once(
    context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted([finish(n) for n in range(3)])

    await run(executor(context, script, step("a"), step("b"), step("c")))

    assert [each[0].parts[1].content for each in script.asked] == ["<a>", "<b>", "<c>"]


async def test_each_step_gets_the_upstream_keys_behind_those_of_its_own(
    context: RunContext, scripted: Any, run: Any
) -> None:
    await context.memory.set("task:up", 1, title="Up")
    script = scripted({"<a>": [finish(1)], "<b>": [finish(2)]})

    await run(
        executor(context, script, step("a"), step("b", "a"), upstream_memory_keys=["task:up"])
    )

    assert script.first("<a>").endswith("these keys):\n- task:up — Up")
    assert script.first("<b>").endswith("these keys):\n- step:a — <a>\n- task:up — Up")


async def test_a_result_that_a_killed_run_did_not_hand_to_its_task_is_handed_on(
    tmp_path: Path, scripted: Any, run: Any
) -> None:
    async with RunContext.open(tmp_path) as context:
        task = Task(id="t", title="T", steps=[step("s")])
        checkpoint = Checkpoint.of(context, task)
        await checkpoint.finish_step("s", {"n": 1})
        await context.memory.set("task:t", "stale")
        script = scripted([])

        one = TaskExecutor(task=task, context=context, model=script.model, checkpoint=checkpoint)
        events = await run(one)

        assert (events, script.asked) == ([], [])
        assert task.completed
        assert task.steps[0].completed
        assert await one.get_result() == {"n": 1}


async def test_a_task_whose_steps_were_done_before_has_the_result_of_the_last(
    context: RunContext, scripted: Any, run: Any
) -> None:
    await context.memory.set("step:s", {"n": 1})
    one = executor(context, scripted([]), step("s", completed=True))

    await run(one)

    assert one.task.completed
    assert await one.get_result() == {"n": 1}


async def test_a_task_that_failed_can_be_run_again(
    context: RunContext, scripted: Any, run: Any
) -> None:
    one = executor(context, scripted(["prose", finish(1)]), step("s"))
    await run(one)
    assert one.task.failed
    assert one.task.steps[0].failed

    await run(one)

    assert (one.task.completed, one.task.failed, one.task.error) == (True, False, None)
    assert (one.task.steps[0].failed, one.task.steps[0].error) == (False, None)
    assert await one.get_result() == 1


@pytest.mark.parametrize("name", ["max_steps", "max_step_iterations"])
def test_numbers_outside_their_range_are_refused(
    context: RunContext, scripted: Any, name: str
) -> None:
    with pytest.raises(ValueError, match=name):
        executor(context, scripted([]), step("s"), **{name: 0})
