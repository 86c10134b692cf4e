from pathlib import Path
from typing import Any

import pytest

from coatcheck import Bank
from coatcheck.errors import InvalidPlanError, RunCancelledError, StoreUnavailableError
from coatcheck.runtime import Checkpoint, RunContext, Step, StepExecutor, StepResult, Task
from coatcheck.stores import MemoryStore


def finish(result: object) -> tuple[str, object]:
    return "finish_step", {"result": result}


class Failing(MemoryStore):
    """A store that takes nothing more once it is down."""

    is_down = False

    async def put(self, key: str, payload: bytes) -> None:
        self._check()
        await super().put(key, payload)

    async def create(self, key: str, payload: bytes) -> bool:
        self._check()
        return await super().create(key, payload)

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailableError("no room")


async def test_a_step_whose_result_cannot_be_kept_raises_and_is_not_done(
    scripted: Any, run: Any
) -> None:
    store = Failing()
    context = RunContext(Bank(store))
    step = Step(id="s1", output_schema={})

    def breaks() -> str:
        store.is_down = True
        return "x" * 60_000

    script = scripted([("breaks", {}), finish(1)])
    one = StepExecutor(
        task=Task(id="t", steps=[step]),
        step=step,
        context=context,
        model=script.model,
        tools=[breaks],
    )

    with pytest.raises(StoreUnavailableError):
        await run(one)

    assert (step.completed, step.failed) == (False, False)
    assert script.returned()[0].startswith("x" * 60_000)  # nothing is lost, and no pointer is shown


async def test_a_step_has_the_times_of_its_clock(one_step: Any, scripted: Any, run: Any) -> None:
    times = iter(range(100, 200))

    events = await run(one_step(scripted([finish(1)]), clock=lambda: float(next(times))))

    (result,) = [event for event in events if isinstance(event, StepResult)]
    assert result.step.start_time is not None
    assert result.step.end_time is not None
    assert 100 <= result.step.start_time.timestamp() < result.step.end_time.timestamp() < 200


@pytest.mark.parametrize(
    ("turn", "title"), [(finish(1), "i" * 80), ("prose", "Failed: " + "i" * 60)]
)
async def test_entries_are_titled_by_the_head_of_the_instructions(
    context: RunContext, scripted: Any, run: Any, turn: object, title: str
) -> None:
    step = Step(id="s1", instructions="i" * 100, output_schema={})

    await run(
        StepExecutor(
            task=Task(steps=[step]), step=step, context=context, model=scripted([turn]).model
        )
    )

    entry = await context.memory.get("step:s1")
    assert entry is not None
    assert entry.title == title


@pytest.mark.parametrize("id_", ["", "x" * 201, "\ud800"])
async def test_an_id_that_cannot_be_a_key_is_refused(
    context: RunContext, scripted: Any, run: Any, id_: str
) -> None:
    step = Step(id=id_)
    one = StepExecutor(
        task=Task(steps=[step]), step=step, context=context, model=scripted([]).model
    )

    with pytest.raises(InvalidPlanError, match="1 to 200 characters"):
        await run(one)


async def test_a_finished_step_is_not_run_again(tmp_path: Path, scripted: Any, run: Any) -> None:
    async with RunContext.open(tmp_path) as context:
        step = Step(id="s1")
        task = Task(id="t", steps=[step])
        checkpoint = Checkpoint.of(context, task)
        await checkpoint.finish_step("s1", "done before")
        one = StepExecutor(
            task=task,
            step=step,
            context=context,
            model=scripted([]).model,
            checkpoint=checkpoint,
        )

        assert await run(one) == []
        assert step.completed
        assert await one.get_result() == "done before"


async def test_in_a_run_that_was_cancelled_no_step_begins(
    one_step: Any, context: RunContext, scripted: Any, run: Any
) -> None:
    script = scripted([])
    context.cancel("too late")

    with pytest.raises(RunCancelledError, match="too late"):
        await run(one_step(script))

    assert script.asked == []
