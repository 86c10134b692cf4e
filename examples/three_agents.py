"""Three agents report on a day of log events that none of them sees.

A collector fetches one event a second of 24 hours, about 20 MB; an analyzer counts errors by
service and finds the 95th percentile of the latency; a reporter writes it up. They share memory:
the collector hands on a pointer, the analyzer asks SQL of what is behind it. Beside it the same
without pointers, where the events pass through two of the three.

Scripts stand in for the models, so this shows what the pointers cost, not what a model would do.

    pip install 'coatcheck[agent,cli,sql]'
    python examples/three_agents.py
"""

import argparse
import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from ledger import Ledger, plain
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from scripted import Function, Message, calls, converse, results, says, table

from coatcheck import Artifact, Bank, Kind, Limits
from coatcheck.runtime import Agent, RunContext, Step, Task, TaskPlan

EVENTS = 86_400
SEED = 7
SERVICES = ("auth", "billing", "gateway", "search")
MARK = "event-text"
"""Stands in each event, and is to stand in no request."""
ERRORS = "SELECT service, count(*) AS errors FROM data WHERE level = 'ERROR' GROUP BY service"
P95 = "SELECT quantile_disc(latency_ms, 0.95) AS p95 FROM data"
AGENTS = ("collect", "analyze", "report")

Row = dict[str, object]
Event = dict[str, Any]


def day(events: int = EVENTS) -> list[Event]:
    """Return one event a second of 24 hours."""
    rng = random.Random(SEED)
    return [
        {
            "at": f"2026-05-07T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z",
            "service": rng.choice(SERVICES),
            "level": "ERROR" if rng.random() < 0.02 else "INFO",
            "latency_ms": int(rng.lognormvariate(4, 1)),
            "message": f"{MARK} {rng.getrandbits(256):064x} " + "of a request " * 5,
        }
        for at in range(events)
    ]


def report(events: Sequence[Event]) -> str:
    """Return what there is to report, found by a loop over all of it."""
    errors = Counter(event["service"] for event in events if event["level"] == "ERROR")
    latencies = sorted(event["latency_ms"] for event in events)
    return _sentence(dict(errors), latencies[math.ceil(0.95 * len(events)) - 1])


def _sentence(errors: dict[str, int], p95: int) -> str:
    worst = max(errors, key=errors.__getitem__)
    return f"{sum(errors.values())} errors, most in {worst}; p95 {p95} ms"


async def by_pointers(events: int) -> list[Row]:
    """Return what each agent costs where they hand on pointers."""
    ledger = Ledger(FunctionModel(_reply, model_name="scripted"))

    async def collect_events(bank: Bank) -> Artifact:
        """Fetch the log events of a day."""
        return await bank.put(day(events), kind="event-log")

    kind = Kind("event-log", prefix="log")
    # Without previews, which would be the first events: the glimpse says what they are.
    async with RunContext.open("memory:", kinds=[kind], limits=Limits(preview_chars=0)) as context:
        agent = Agent(
            objective="Report on the day.", plan=_plan(), model=ledger, tools=[collect_events]
        )
        async with aclosing(agent.execute(context)) as told:
            async for _event in told:
                pass
        answer = await context.memory.get_value("task:report")
    seen = any(MARK in text for text in ledger.passed)
    sent = list(zip(ledger.firsts, ledger.requests, strict=True))
    return [
        _row(
            "pointers",
            name,
            [tokens for first, tokens in sent if f"Now {name}." in first],
            sees_events=seen,
            answer=answer,
        )
        for name in AGENTS
    ]


def _plan() -> TaskPlan:
    def step(name: str, schema: dict[str, object] | None) -> list[Step]:
        return [Step(id=f"{name}_s", instructions=f"Now {name}.", output_schema=schema)]

    return TaskPlan(
        title="Report on a day",
        tasks=[
            Task(id="collect", steps=step("collect", {})),
            Task(id="analyze", depends_on=["collect"], steps=step("analyze", {})),
            Task(id="report", depends_on=["analyze"], steps=step("report", None)),
        ],
    )


async def _reply(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    sent = [part for message in messages for part in plain(message)]
    first = next(each["content"] for each in sent if each["role"] == "user")
    returned = [each["content"] for each in sent if each["role"] == "tool"]
    said = _next(first, returned)
    parts = said if isinstance(said, str) else [ToolCallPart(*call) for call in said]
    return ModelResponse([TextPart(parts)] if isinstance(parts, str) else list(parts))


def _next(first: str, returned: Sequence[str]) -> str | list[tuple[str, dict[str, Any]]]:
    """Return what an agent does next: it sees messages, and nothing behind them."""
    if "Now collect." in first:
        if not returned:
            return [("collect_events", {})]
        return [("finish_step", {"result": {"events": json.loads(returned[0])["pointer"]}})]
    if "Now analyze." in first:
        return _analyze(returned)
    if "Now report." in first:
        if not returned:
            return [("memory_read", {"keys": ["task:analyze"]})]
        found = _value(returned[0], "task:analyze")
        return _sentence(found["errors"], found["p95"])
    return "The report is written."


def _analyze(returned: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    if not returned:
        return [("memory_read", {"keys": ["task:collect"]})]
    if len(returned) == 1:
        pointer = _value(returned[0], "task:collect")["events"]
        return [
            ("retrieve_context", {"artifactId": pointer, "query": query}) for query in (ERRORS, P95)
        ]
    errors, p95 = (json.loads(text)["value"] for text in returned[1:])
    found = {row["service"]: row["errors"] for row in errors}
    return [("finish_step", {"result": {"errors": found, **p95[0]}})]


def _value(text: str, key: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(text)["entries"][key]["value"])


async def raw(events: int) -> list[Row]:
    """Return the same where the events pass through the models. No window ends it."""
    shared: dict[str, object] = {}

    def collect_events() -> list[Event]:
        return day(events)

    def write(key: str, value: object) -> bool:
        shared[key] = value
        return True

    def read(key: str) -> object:
        return shared[key]

    text = {"type": "string"}
    functions = [
        Function(collect_events, "Fetch the log events of a day.", {}),
        Function(write, "Write what all agents can read.", {"key": text, "value": {}}),
        Function(read, "Read what an agent wrote.", {"key": text}),
    ]
    rows: list[Row] = []
    for name in AGENTS:
        run = await converse(
            _raw_model, functions, system="Work exactly.", question=name, window_tokens=None
        )
        seen = any(size > events for size in run.calls_in)
        rows.append(_row("raw", name, run.calls_in, sees_events=seen, answer=run.answer))
    return rows


def _raw_model(messages: Sequence[Message]) -> Message:
    name = messages[1]["content"]
    shown = [json.loads(text) for text in results(messages)]
    if len(shown) > 1:
        return says("Done.")
    if name == "collect":
        if not shown:
            return calls(("collect_events", {}), after=messages)
        return calls(("write", {"key": "events", "value": shown[0]}), after=messages)
    if not shown:
        return calls(("read", {"key": "events" if name == "analyze" else "found"}), after=messages)
    if name == "report":
        return says(str(shown[0]["report"]))
    return calls(("write", {"key": "found", "value": {"report": report(shown[0])}}), after=messages)


def _row(way: str, name: str, requests: Sequence[int], *, sees_events: bool, answer: object) -> Row:
    return {
        "way": way,
        "agent": name,
        "requests": len(requests),
        "tokens in": sum(requests),
        "largest request": max(requests),
        "sees events": "yes" if sees_events else "no",
        "answer": answer if name == "report" else "",
    }


def main() -> None:
    """Print what each agent costs, by pointers and raw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--events", type=int, default=EVENTS, help="how many (default: a day's)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [*asyncio.run(by_pointers(options.events)), *asyncio.run(raw(options.events))]
    if options.json:
        print(json.dumps(rows))
    else:
        print(table([list(rows[0]), *(list(row.values()) for row in rows)]))


if __name__ == "__main__":
    main()
