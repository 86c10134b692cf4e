"""A run in memory, and what runs an executor to its end."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from coatcheck.runtime import Event, RunContext, Step, StepExecutor, Task

Run = Callable[..., Awaitable[list[Event]]]


@pytest.fixture
def context() -> RunContext:
    return RunContext()


@pytest.fixture
def run() -> Run:
    """Return what runs an executor, and gives its events."""

    async def run(executor: Any) -> list[Event]:
        async with aclosing(executor.execute()) as events:
            return [event async for event in events]

    return run


@pytest.fixture
def one_step(context: RunContext) -> Callable[..., StepExecutor]:
    """Return what makes the executor of one step, with a schema that takes anything."""

    def make(script: Any, **options: Any) -> StepExecutor:
        step = Step(
            id="s1",
            instructions="Do it.",
            output_schema=options.pop("output_schema", {}),
            tools=options.pop("only", None),
        )
        return StepExecutor(
            task=Task(id="t1", steps=[step]),
            step=step,
            context=context,
            model=script.model,
            **options,
        )

    return make
