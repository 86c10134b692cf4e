"""A plan of five tasks, killed in each phase and resumed in a new process."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

PROGRAM = r"""
import asyncio, json, os, signal, sys
from contextlib import aclosing, suppress
from importlib import import_module
from pathlib import Path

# What is imported here, before it forks, is imported once.
for module in ("anyio._backends._asyncio", "genai_prices.data", "jsonschema_rs",
               "pydantic_ai.direct"):
    with suppress(ImportError):
        import_module(module)

from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from coatcheck.runtime import ParallelTaskExecutor, RunContext, Step, Task, TaskPlan

def step(id_, *after, **more):
    more = {"instructions": f"Work on <{id_}>", "output_schema": {}, **more}
    return Step(id=id_, depends_on=list(after), **more)

def plan():
    each = step("d_each", "d_list", mode="process", per_item_instructions="Work on <d_{item}>")
    return TaskPlan(title="Five", tasks=[
        Task(id="a", steps=[step("a_s")]),
        Task(id="b", depends_on=["a"], steps=[step("b_1"), step("b_s", "b_1")]),
        Task(id="c", depends_on=["a"], steps=[step("c_s")]),
        Task(id="d", depends_on=["b", "c"], steps=[step("d_list"), each]),
        Task(id="e", depends_on=["d"], steps=[step("e_s")]),
    ])

async def run(folder, kill_at, resumable=True):
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def reached(point):
        os.write(log, f"{point}\n".encode())
        if point == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def model(messages, info):
        said = messages[0].parts[1].content
        name = said[said.index("<") + 1 : said.index(">")]
        if len(messages) == 1:
            reached(f"asked:{name}")
            return ModelResponse(parts=[
                ToolCallPart("work", {"on": name}),
                ToolCallPart("memory_read", {"keys": ["task:a", "task:b", "task:d"]}),
            ])
        answers = [part.content for part in messages[-1].parts]
        seen = {key: entry["value"] for key, entry in json.loads(answers[1])["entries"].items()}
        result = {"of": name, "work": answers[0], "seen": seen}
        if name == "d_list":
            result = ["x", "y", "z"]
        if name == "c_s":
            result = json.loads(answers[0])["pointer"]  # held as what is behind it
        return ModelResponse(parts=[ToolCallPart("finish_step", {"result": result})])

    async def work(on: str) -> str:
        reached(f"tool:{on}")
        return f"work on {on} " * (5_000 if on == "c_s" else 1)

    async with RunContext.open(folder / "store") as context:
        context.memory.subscribe(lambda entry: reached(entry.key))
        executor = ParallelTaskExecutor(
            plan=plan(), context=context, model=FunctionModel(model, model_name="scripted"),
            tools=[work], resumable=resumable, max_concurrent_agents=1,
        )
        async with aclosing(executor.execute()) as events:
            async for _ in events:
                pass
        entries = await context.memory.list()
        kept = {entry.key: await context.memory.value_of(entry) for entry in entries}
        told = {"kept": kept, "final": await executor.get_final_result()}
        (folder / "told").write_text(json.dumps(told))

def child(folder, kill_at=""):
    # Forked before there is a loop or thread: each run is a process of its own, at the price of
    # one import.
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(run(folder, kill_at))
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]

root = Path(sys.argv[1])
told = {}
for number, point in enumerate(["", *sys.argv[2:]]):
    folder = root / str(number)
    folder.mkdir()
    first = child(folder, point)
    before = (folder / "log").read_text().split()
    second = child(folder) if point else first
    told[point] = {
        "killed": os.WIFSIGNALED(first) and os.WTERMSIG(first) == signal.SIGKILL,
        "ended": second == 0,
        "before": before,
        "log": (folder / "log").read_text().split(),
        **json.loads((folder / "told").read_text()),
    }
print(json.dumps(told))
"""
STEPS = ("a_s", "b_1", "b_s", "c_s", "d_list", "d_y", "e_s")
POINTS = [
    *("asked:a_s", "asked:d_y", "tool:b_1", "tool:e_s"),
    *("step:c_s", "step:d_list", "step:d_each"),
    *(f"task:{name}" for name in "abcde"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Return what came of the plan by the point where its first process was killed."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("runs")), *POINTS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_an_undisturbed_run_does_each_step_once(runs: Mapping[str, Any]) -> None:
    whole = runs[""]

    assert whole["ended"]
    assert sorted(whole["log"]) == sorted({*whole["log"]})
    assert whole["final"]["of"] == "e_s"
    assert [item["of"] for item in whole["kept"]["task:d"]] == ["d_x", "d_y", "d_z"]


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_run_goes_on_and_comes_to_the_same(runs: Mapping[str, Any], point: str) -> None:
    whole, resumed = runs[""], runs[point]

    assert resumed["killed"]
    assert resumed["ended"]
    assert resumed["before"][-1] == point
    assert resumed["kept"] == whole["kept"]
    assert resumed["final"] == whole["final"]


@pytest.mark.parametrize("point", POINTS)
def test_what_was_finished_before_the_kill_is_done_once(
    runs: Mapping[str, Any], point: str
) -> None:
    before, log = runs[point]["before"], runs[point]["log"]
    finished = [each.removeprefix("step:") for each in before if each.startswith("step:")]

    assert [name for name in finished if log.count(f"asked:{name}") > 1] == []
    assert [name for name in finished if log.count(f"tool:{name}") > 1] == []
    assert all(log.count(f"tool:{name}") in {1, 2} for name in STEPS)
