"""Measures what the executors add to their model: a table, or JSON.

The model is scripted, so that what is left is the executors' own work and that of memory.
"""

import argparse
import asyncio
import gc
import json
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from measure import CLOCKS, Clock, Contender, Row, Timer, fresh_imports
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from coatcheck.runtime import (
    ParallelTaskExecutor,
    RunContext,
    Step,
    StepExecutor,
    Task,
    TaskPlan,
    TaskUpdate,
)

STEP_MS = 1.0
ALIVE_KIB = 4
SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def _answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart("finish_step", {"result": {"n": 1}})])


MODEL = FunctionModel(_answer, model_name="scripted")


def step(number: int) -> Step:
    return Step(id=f"s{number}", instructions="Give the number.", output_schema=dict(SCHEMA))


async def bare_request() -> None:
    await model_request(MODEL, [ModelRequest.user_text_prompt("Give the number.")])


async def steps(context: RunContext, count: int) -> None:
    for number in range(count):
        one = step(number)
        executor = StepExecutor(
            task=Task(id="t", steps=[one]),
            step=one,
            context=context,
            model=MODEL,
            use_finish_task=True,
        )
        async with aclosing(executor.execute()) as events:
            async for _event in events:
                pass
        assert one.completed


async def pace(rounds: int, clock: Clock) -> Row:
    """Return a gauge of the machine, by which times of two machines or days can be compared."""
    (gauge,) = await asyncio.to_thread(fresh_imports, ["asyncio"], rounds, clock)
    return Row(
        part="gauge",
        name="import asyncio, fresh process",
        measured=gauge.seconds * 1000,
        unit="ms",
        note="the pace of the machine",
    )


async def overhead(timer: Timer, count: int, rounds: int) -> Row:
    """Run steps of one turn, each in an executor of its own, against their bare requests."""
    async with RunContext.open("memory:") as context:

        async def ours() -> None:
            await steps(context, count)

        async def bare() -> None:
            for _ in range(count):
                await bare_request()

        contenders = {"bare": Contender(bare), "ours": Contender(ours)}
        seconds = await timer.in_turn(contenders, rounds)
    limit, measured = (median(seconds[name]) / count * 1000 for name in ("bare", "ours"))
    return Row(
        part="step",
        name="one turn, finish_step, two entries of memory",
        measured=measured,
        unit="ms",
        limit=limit,
        ratio=measured / limit,
        target=f"≤ {STEP_MS:g} ms over a bare model_request",
        reached=measured - limit <= STEP_MS,
    )


async def plan(count: int, watch: Callable[[int], None]) -> None:
    """Run a plan of tasks with one step each, 8 wide; tell how many are done."""
    tasks = [Task(id=f"t{number}", steps=[step(number)]) for number in range(count)]
    async with RunContext.open("memory:") as context:
        executor = ParallelTaskExecutor(
            plan=TaskPlan(tasks=tasks), context=context, model=MODEL, max_concurrent_agents=8
        )
        done = 0
        async with aclosing(executor.execute()) as events:
            async for event in events:
                if isinstance(event, TaskUpdate) and event.event == "task_completed":
                    done += 1
                    watch(done)
        results = await executor.get_all_results()
    if results != {task.id: {"n": 1} for task in tasks}:
        raise RuntimeError(f"{done} of {count} tasks were completed")


async def timed_plan(clock: Clock, count: int) -> Row:
    began = clock()
    await plan(count, lambda _done: None)
    seconds = clock() - began
    return Row(
        part="plan",
        name=f"{count:,} tasks of one step, 8 wide",
        measured=seconds / count * 1000,
        unit="ms a task",
        note=f"{seconds:.1f} s in all",
    )


async def traced_plan(count: int) -> Row:
    """Run the plan once more, and count what is alive: the process keeps what it once had."""
    alive_bytes: dict[int, int] = {}

    def watch(done: int) -> None:
        if done in {count // 5, count}:
            gc.collect()
            alive_bytes[done] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    await plan(count, watch)
    tracemalloc.stop()
    grown_bytes = alive_bytes[count] - alive_bytes[count // 5]
    kib = grown_bytes / (count - count // 5) / 1024
    return Row(
        part="plan",
        name=f"alive, from task {count // 5:,} to task {count:,}",
        measured=kib,
        unit="KiB a task",
        target=f"≤ {ALIVE_KIB} KiB, its two entries among them",
        reached=kib <= ALIVE_KIB,
    )


async def run(options: argparse.Namespace) -> list[Row]:
    clock = CLOCKS[options.clock]
    timer = Timer(clock=clock, calls=1, call_rounds=1)
    count, rounds, tasks = (50, 3, 100) if options.quick else (200, 9, 1_000)
    return [
        await pace(rounds, clock),
        await overhead(timer, count, rounds),
        await timed_plan(clock, tasks),
        await traced_plan(tasks),
    ]


def shown(row: Row) -> str:
    limit = "" if row.limit is None else f"{row.limit:8.3f} bare"
    mark = {None: "", True: "reached", False: "MISSED"}[row.reached]
    head = f"{row.part:5} {row.name:46} {row.measured:8.3f} {row.unit:10} {limit:13}"
    return f"{head}  {row.target}  {mark}  {row.note}".rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps and tasks")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="cpu", help="nothing waits here, so cpu says it all"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    options = parser.parse_args()
    rows = asyncio.run(run(options))
    for row in rows:
        print(shown(row))
    if options.json is not None:
        told = {"clock": options.clock, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
