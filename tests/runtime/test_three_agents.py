"""Collector, analyzer and reporter over a day of log events, of which no model sees one."""

import json
import math
import random
from collections import Counter
from contextlib import aclosing
from typing import Any

from coatcheck import Artifact, Bank, Kind, Limits
from coatcheck.runtime import Agent, RunContext, Step, Task, TaskPlan
from coatcheck.stores import MemoryStore

EVENTS = 86_400
SERVICES = ("auth", "billing", "gateway", "search")
ERRORS = "SELECT service, count(*) AS errors FROM data WHERE level = 'ERROR' GROUP BY service"
P95 = "SELECT quantile_disc(latency_ms, 0.95) AS p95 FROM data"
LOG = Kind("event-log", prefix="log", glimpse=lambda events: f"{len(events):,} log events")  # type: ignore[arg-type]
ANY: dict[str, object] = {}


def day(seed: int) -> list[dict[str, object]]:
    """Return one event a second of 24 hours, about 20 MB."""
    rng = random.Random(seed)
    return [
        {
            "at": f"2026-05-07T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z",
            "service": rng.choice(SERVICES),
            "level": "ERROR" if rng.random() < 0.02 else "INFO",
            "latency_ms": int(rng.lognormvariate(4, 1)),
            "message": f"event-text {rng.getrandbits(256):064x} " + "of a request " * 5,
        }
        for at in range(EVENTS)
    ]


def value_of(text: str, key: str) -> Any:
    return json.loads(text)["entries"][key]["value"]


def returned(messages: list[Any]) -> list[str]:
    return [
        part.content
        for message in messages
        for part in message.parts
        if part.part_kind == "tool-return"
    ]


def collector() -> list[Any]:
    def hand_on(messages: list[Any]) -> Any:
        return "finish_step", {"result": {"events": json.loads(returned(messages)[0])["pointer"]}}

    return [("collect_events", {"seed": 7}), hand_on]


def analyzer() -> list[Any]:
    def ask(messages: list[Any]) -> Any:
        pointer = value_of(returned(messages)[0], "task:collect")["events"]
        # What it may try, and what cannot touch the collector's result.
        forged = "memory_write", {"key": "task:collect", "value": "forged"}
        asked = [{"artifactId": pointer, "query": query} for query in (ERRORS, P95)]
        return [forged, *(("retrieve_context", each) for each in asked)]

    def answer(messages: list[Any]) -> Any:
        errors, p95 = (json.loads(text)["value"] for text in returned(messages)[2:])
        result = {"errors": {row["service"]: row["errors"] for row in errors}, **p95[0]}
        return "finish_step", {"result": result}

    return [("memory_read", {"keys": ["task:collect"]}), ask, answer]


def reporter() -> list[Any]:
    def report(messages: list[Any]) -> Any:
        found = value_of(returned(messages)[0], "task:analyze")
        total = sum(found["errors"].values())
        worst = max(found["errors"], key=found["errors"].__getitem__)
        return f"{total} errors, most in {worst}; p95 {found['p95']} ms"

    return [("memory_read", {"keys": ["task:analyze"]}), report]


async def test_w7_three_agents_report_exactly_on_a_day_of_events_that_none_of_them_saw(
    scripted: Any,
) -> None:
    async def collect_events(seed: int, bank: Bank) -> Artifact:
        return await bank.put(day(seed), kind="event-log")

    def step(id_: str, schema: dict[str, object] | None = ANY) -> list[Step]:
        return [Step(id=f"{id_}_s", instructions=f"Now {id_}.", output_schema=schema)]

    plan = TaskPlan(
        title="Report of a day",
        tasks=[
            Task(id="collect", title="Collect", steps=step("collect")),
            Task(id="analyze", title="Analyze", depends_on=["collect"], steps=step("analyze")),
            Task(id="report", title="Report", depends_on=["analyze"], steps=step("report", None)),
        ],
    )
    script = scripted(
        {
            "Now collect": collector(),
            "Now analyze": analyzer(),
            "Now report": reporter(),
            "# Objective": ["the report"],
        }
    )
    context = RunContext(Bank(MemoryStore(), kinds=[LOG], limits=Limits(preview_chars=0)))
    agent = Agent(objective="Report.", plan=plan, model=script.model, tools=[collect_events])

    async with aclosing(agent.execute(context)) as events:
        async for _event in events:
            pass

    rows: list[dict[str, Any]] = day(7)
    errors = Counter(row["service"] for row in rows if row["level"] == "ERROR")
    latencies = sorted(row["latency_ms"] for row in rows)
    p95 = latencies[math.ceil(0.95 * EVENTS) - 1]
    analysis = {"errors": dict(errors), "p95": p95}
    assert await context.memory.get_value("task:analyze") == analysis
    worst, _ = errors.most_common(1)[0]
    report = f"{errors.total()} errors, most in {worst}; p95 {p95} ms"
    assert await context.memory.get_value("task:report") == report

    assert agent.get_results() == "the report"
    assert len(json.dumps(rows)) > 19_000_000
    contexts = [
        str(part.content if hasattr(part, "content") else part.args)
        for messages in script.asked
        for message in messages
        for part in message.parts
    ]
    assert not [text for text in contexts if "event-text" in text or "of a request" in text]
    assert max(map(len, contexts)) < 5_000

    collected: Any = await context.memory.get_value("task:collect")
    pointer = collected["events"]
    assert pointer.startswith("log-")
    assert await context.memory.get_value("step:collect_s") == {"events": pointer}
    assert await context.memory.get_value("shared:task:collect") == "forged"
