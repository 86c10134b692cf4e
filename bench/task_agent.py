"""The agent of the token tasks: its own tools, bare and mirrored, and what it is asked."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import task_payloads as payloads
import task_policies as policies
from task_loop import AgentTool, Policy

from coatcheck import Bank, CoatcheckError, Envelope, Mirror
from coatcheck.tools import as_failure, retrieval_tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A tool of the agent's own, as any framework has it."""

    name: str
    description: str
    run: Callable[..., object]
    properties: Mapping[str, object]

    @property
    def parameters(self) -> dict[str, Any]:
        required = list(self.properties)
        return {"type": "object", "properties": dict(self.properties), "required": required}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question, the two policies that answer it, and what the one with pointers may cost."""

    name: str
    question: str
    raw: Policy
    ours: Policy
    answer: Callable[[], str]
    most_tokens: int | None


def _log() -> str:
    return "\n".join(payloads.log_lines()) + "\n"


def _count_lines(text: str) -> str:
    return str(text.count("\n"))


def _mean_of(numbers: Sequence[float]) -> str:
    return f"{fmean(numbers):.4f}"


FUNCTIONS = (
    Function(
        name="list_orders",
        description="All orders, as JSON.",
        run=lambda: payloads.one_line(payloads.orders()),
        properties={},
    ),
    Function(
        name="list_orders_indented",
        description="All orders, as indented JSON.",
        run=lambda: payloads.indented(payloads.orders()),
        properties={},
    ),
    Function(
        name="read_log",
        description="The log of the server.",
        run=_log,
        properties={},
    ),
    Function(
        name="list_flights",
        description="All flights of January 2013.",
        run=payloads.flights,
        properties={},
    ),
    Function(
        name="make_grid",
        description="Compute the electronic grid of a molecule.",
        run=payloads.grid,
        properties={},
    ),
    Function(
        name="read_sensors",
        description="Readings of all sensors, as CSV.",
        run=payloads.csv_text,
        properties={},
    ),
    Function(
        name="count_lines",
        description="Count the lines of a text.",
        run=_count_lines,
        properties={"text": {"type": "string"}},
    ),
    Function(
        name="mean_of",
        description="The mean of numbers, to four places.",
        run=_mean_of,
        properties={"numbers": {"type": "array", "items": {"type": "number"}}},
    ),
)

STAND_INS = {
    "list_orders": ("orders, JSON on one line", 320),
    "list_orders_indented": ("the same, indented", 320),
    "read_log": ("log with one error", 300),
    "list_flights": ("27,004 flights, typed rows", 400),
    "make_grid": ("grid of 128³ floats, an array", 100),
    "read_sensors": ("CSV", 300),
}


def _needle(tool: str) -> str:
    wanted = payloads.orders()[payloads.ORDERS * 2 // 3]["id"]
    return f"What is the amount of order {wanted}? Orders come from {tool}."


def _needle_answer() -> str:
    return json.dumps(payloads.orders()[payloads.ORDERS * 2 // 3]["amount"])


TASKS = (
    Task(
        name="amount of one order, JSON on one line",
        question=_needle("list_orders"),
        raw=policies.raw_needle,
        ours=policies.needle,
        answer=_needle_answer,
        most_tokens=1_500,
    ),
    Task(
        name="the same, indented",
        question=_needle("list_orders_indented"),
        raw=policies.raw_needle,
        ours=policies.needle,
        answer=_needle_answer,
        most_tokens=1_500,
    ),
    Task(
        name="carrier with the highest mean delay",
        question="Of the carriers with 500 departures or more in list_flights, which has the "
        "highest mean dep_delay?",
        raw=policies.raw_slowest_carrier,
        ours=policies.slowest_carrier,
        answer=lambda: "EV",
        most_tokens=1_800,
    ),
    Task(
        name="text of line 10,000 of the log",
        question="What is the text of line 10,000 of read_log?",
        raw=policies.raw_line,
        ours=policies.line,
        answer=lambda: payloads.log_lines()[9_999],
        most_tokens=1_500,
    ),
    Task(
        name="the same, columns guessed wrong first",
        question="What is the text of line 10,000 of read_log?",
        raw=policies.raw_line,
        ours=policies.line_guessed,
        answer=lambda: payloads.log_lines()[9_999],
        most_tokens=None,
    ),
    Task(
        name="the ERROR line of the log",
        question="What does the ERROR line of read_log say?",
        raw=policies.raw_error_line,
        ours=policies.error_line,
        answer=lambda: payloads.log_lines()[payloads.ERROR_LINE_NUMBER - 1],
        most_tokens=None,
    ),
    Task(
        name="how many orders are late",
        question="How many orders of list_orders are late?",
        raw=policies.raw_late_orders,
        ours=policies.late_orders,
        answer=lambda: str(payloads.LATE_ORDERS),
        most_tokens=1_500,
    ),
    Task(
        name="how many are late in one city",
        question="How many orders of list_orders are late in Oslo?",
        raw=policies.raw_late_orders_of_a_city,
        ours=policies.late_orders_of_a_city,
        answer=lambda: str(
            sum(
                order["status"] == "late" and order["customer"]["city"] == "Oslo"
                for order in payloads.orders()
            )
        ),
        most_tokens=1_500,
    ),
    Task(
        name="the log handed to a tool that takes text",
        question="How many lines does count_lines count in read_log?",
        raw=policies.raw_line_count,
        ours=policies.line_count,
        answer=lambda: str(payloads.LOG_LINES),
        most_tokens=None,
    ),
    Task(
        name="all amounts handed to a tool that takes an array",
        question="What does mean_of say of the amounts of list_orders?",
        raw=policies.raw_mean_amount,
        ours=policies.mean_amount,
        answer=lambda: _mean_of([order["amount"] for order in payloads.orders()]),
        most_tokens=None,
    ),
)


def raw_tools() -> list[AgentTool]:
    """Return the agent's own tools, their results shown whole, as most frameworks write them."""

    def bare(function: Function) -> AgentTool:
        async def call(arguments: Mapping[str, object]) -> str:
            return _as_text(function.run(**arguments))

        return AgentTool(
            name=function.name,
            description=function.description,
            parameters=function.parameters,
            call=call,
        )

    return list(map(bare, FUNCTIONS))


def mirrored_tools(bank: Bank) -> list[AgentTool]:
    """Return the same mirrored, and `retrieve_context`, as an adapter does it."""
    mirror = Mirror(bank)

    def mirrored(function: Function) -> AgentTool:
        async def call(arguments: Mapping[str, object]) -> str:
            try:
                found = await mirror.resolve(arguments, function.parameters)
            except CoatcheckError as error:
                return str(as_failure(error))
            value = function.run(**found)
            return _as_text(await mirror.offload(value, tool=function.name, call_id="call_0"))

        return AgentTool(
            name=function.name,
            description=function.description,
            parameters=mirror.schema(function.parameters),
            call=call,
        )

    readers = [
        AgentTool(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            call=tool.call,
        )
        for tool in retrieval_tools(bank)
    ]
    return [*map(mirrored, FUNCTIONS), *readers]


def _as_text(value: Any) -> str:  # noqa: ANN401 - whatever a tool returns
    if isinstance(value, str | Envelope):
        return str(value)
    if hasattr(value, "tolist"):
        return json.dumps(value.tolist())
    return payloads.one_line(value)
