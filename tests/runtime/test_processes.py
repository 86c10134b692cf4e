"""Runs that share memory through a store: two processes at once, and one after another."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from coatcheck.mirror import background
from coatcheck.runtime import (
    ParallelTaskExecutor,
    RunContext,
    Step,
    StepExecutor,
    StepTool,
    Task,
    TaskPlan,
)
from coatcheck.tools import poll_tools

WORKER = r"""
import asyncio, json, sys
from contextlib import aclosing

from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from coatcheck.runtime import RunContext, Step, Task, TaskExecutor

async def main(url, name):
    async def model(messages, info):
        told = messages[0].parts[1].content
        if len(messages) == 1 and "Required upstream memory" in told:
            key = told.rpartition("\n- ")[2].partition(" ")[0]
            return ModelResponse(parts=[ToolCallPart("memory_read", {"keys": [key]})])
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("rows", {})])
        reply = json.loads(messages[-1].parts[0].content)
        if isinstance(reply, dict) and "entries" in reply:
            (entry,) = reply["entries"].values()
            arguments = {"items": entry.get("pointer", entry["value"])}
            return ModelResponse(parts=[ToolCallPart("total", arguments)])
        result = reply["pointer"] if isinstance(reply, dict) else [reply, name]
        return ModelResponse(parts=[ToolCallPart("finish_step", {"result": result})])

    def rows() -> list[int]:
        return list(range(20_000))

    def total(items: list[int]) -> int:
        return sum(items)

    async with RunContext.open(url, scope="shared-run") as context:
        print("ready", flush=True)
        while order := sys.stdin.readline().split():
            id_, upstream = order[0], order[1:]
            step = Step(id=f"{id_}_s", instructions=f"Do {id_}.", output_schema={"type": "array"})
            executor = TaskExecutor(
                task=Task(id=id_, title=f"Task {id_}", steps=[step]), context=context,
                model=FunctionModel(model), tools=[rows, total], upstream_memory_keys=upstream,
            )
            seen = []
            async with aclosing(executor.execute()) as events:
                async for event in events:
                    seen.append(len(event.model_dump_json()))
            told = {"result": await executor.get_result(), "longest": max(seen)}
            print(json.dumps(told), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Worker:
    """A process with a run of its own on the shared store."""

    def __init__(self, url: str, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def run(self, order: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return json.loads(self.hear())

    def end(self) -> None:
        self._process.communicate(timeout=60)


def test_tasks_of_two_processes_build_on_each_other_through_redis(redis_url: str) -> None:
    one, two = Worker(redis_url, "one"), Worker(redis_url, "two")
    try:
        assert [one.hear(), two.hear()] == ["ready\n"] * 2

        collected = one.run("collect")
        analyzed = two.run("analyze task:collect")
        again = two.run("again task:collect")
    finally:
        one.end()
        two.end()

    assert collected["result"] == list(range(20_000))
    assert collected["longest"] < 2_000  # the rows stay behind their pointer
    assert analyzed["result"] == [199_990_000, "two"]
    assert again["result"] == analyzed["result"]


async def test_background_work_is_polled_by_the_run_that_goes_on_after_it(
    tmp_path: Path, scripted: Any, run: Any
) -> None:
    async def crawl(site: str) -> str:
        return f"pages of {site} " * 10_000

    def keeps_the_handle(messages: Any) -> tuple[str, object]:
        handle = json.loads(messages[-1].parts[0].content)["handle"]
        return "memory_write", {"key": "handle", "value": handle}

    def polls(messages: Any) -> tuple[str, object]:
        entry = json.loads(messages[-1].parts[0].content)["entries"]["shared:handle"]
        assert entry["value"].startswith("ah:")
        return "pollResult", {"handle": entry["value"], "waitMs": 20_000}

    def ends(messages: Any) -> tuple[str, object]:
        done = json.loads(messages[-1].parts[0].content)
        assert done["status"] == "done"
        return "finish_step", {"result": done["result"]["pointer"]}

    def plan() -> TaskPlan:
        steps = [Step(id="s", instructions="Crawl it.", output_schema={"type": "string"})]
        return TaskPlan(tasks=[Task(id="t", steps=steps)])

    def executor(context: RunContext, script: Any) -> Any:
        tools: list[StepTool] = [background(crawl, context.bank), *poll_tools(context.bank)]
        return ParallelTaskExecutor(
            plan=plan(), context=context, model=script.model, tools=tools, resumable=True
        )

    async with RunContext.open(tmp_path) as context:
        script = scripted([("crawl", {"site": "a"}), keeps_the_handle, RuntimeError("no line")])
        await run(executor(context, script))
        handle = await context.memory.get_value("shared:handle")
        await context.bank.handles.poll(str(handle), 20_000)

    async with RunContext.open(tmp_path) as context:
        script = scripted([("memory_read", {"keys": ["shared:handle"]}), polls, ends])
        one = executor(context, script)
        await run(one)

        assert await one.get_final_result() == "pages of a " * 10_000


async def test_two_runs_of_one_store_and_scope_see_each_other(
    tmp_path: Path, scripted: Any, run: Any
) -> None:
    async with (
        RunContext.open(tmp_path, scope="r") as one,
        RunContext.open(tmp_path, scope="r") as two,
    ):

        async def step(context: RunContext, id_: str, turns: Any) -> Any:
            script = scripted(turns)
            made = Step(id=id_, instructions="Do it.", output_schema={})
            executor = StepExecutor(
                task=Task(id="t", steps=[made]), step=made, context=context, model=script.model
            )
            await run(executor)
            return script

        await asyncio.gather(
            step(
                one,
                "a",
                [("memory_write", {"key": "x", "value": 1}), ("finish_step", {"result": 1})],
            ),
            step(
                two,
                "b",
                [("memory_write", {"key": "y", "value": 2}), ("finish_step", {"result": 2})],
            ),
        )
        read = await step(
            one,
            "c",
            [("memory_read", {"keys": ["x", "y", "step:b"]}), ("finish_step", {"result": 3})],
        )

    entries = json.loads(read.returned()[0])["entries"]
    assert [entries[key]["value"] for key in ("x", "y", "step:b")] == [1, 2, 2]
