"""Scripted models: what each asks for, from nothing but the question and the messages shown.

Those of the raw arm read the whole value; the others an envelope and, where it does not hold the
answer, one reply of `retrieve_context`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Generator, Mapping
from statistics import fmean
from typing import Any, cast

from task_loop import Call, StuckError

Steps = Generator[Call, str, str]

_ID = re.compile(r"ord-[0-9a-f]{16}")
_NUMBER = re.compile(r"\d+")


def raw_needle(question: str) -> Steps:
    wanted = _asked(_ID, question)
    orders = json.loads((yield Call(_tool(question))))
    return _text(next(order["amount"] for order in orders if order["id"] == wanted))


def needle(question: str) -> Steps:
    wanted = _asked(_ID, question)
    envelope = _envelope((yield Call(_tool(question))), "id", "amount")
    sql = f"SELECT amount FROM data WHERE id = '{wanted}'"
    return _text((yield from _first_row(envelope, sql))["amount"])


def raw_late_orders(question: str) -> Steps:
    orders = json.loads((yield Call(_tool(question))))
    return str(sum(order["status"] == "late" for order in orders))


def late_orders(question: str) -> Steps:
    envelope = _envelope((yield Call(_tool(question))), "status")
    told = re.search(r"; status str [^;]*?\blate=(\d+)", envelope["glimpse"])
    if told and "sampled" not in envelope["glimpse"]:
        return told[1]
    sql = "SELECT count(*) AS n FROM data WHERE status = 'late'"
    return _text((yield from _first_row(envelope, sql))["n"])


def late_orders_of_a_city(question: str) -> Steps:
    envelope = _envelope((yield Call(_tool(question))), "status", "customer", "city")
    city = question.rstrip("?").split()[-1]
    sql = f"SELECT count(*) AS n FROM data WHERE status = 'late' AND customer.city = '{city}'"
    return _text((yield from _first_row(envelope, sql))["n"])


def raw_late_orders_of_a_city(question: str) -> Steps:
    city = question.rstrip("?").split()[-1]
    orders = json.loads((yield Call(_tool(question))))
    late = [order for order in orders if order["status"] == "late"]
    return str(sum(order["customer"]["city"] == city for order in late))


def raw_slowest_carrier(question: str) -> Steps:
    flights = json.loads((yield Call(_tool(question))))
    delays: dict[str, list[float]] = defaultdict(list)
    for flight in flights:
        if flight["dep_delay"] is not None:
            delays[flight["carrier"]].append(flight["dep_delay"])
    return max((fmean(each), carrier) for carrier, each in delays.items() if len(each) >= 500)[1]


def slowest_carrier(question: str) -> Steps:
    envelope = _envelope((yield Call(_tool(question))), "carrier", "dep_delay")
    sql = (
        "SELECT carrier FROM data GROUP BY carrier HAVING count(dep_delay) >= 500 "
        "ORDER BY avg(dep_delay) DESC LIMIT 1"
    )
    return _text((yield from _first_row(envelope, sql))["carrier"])


def raw_line(question: str) -> Steps:
    number = int(_asked(_NUMBER, question.replace(",", "")))
    return (yield Call(_tool(question))).split("\n")[number - 1]


def line(question: str) -> Steps:
    number = int(_asked(_NUMBER, question.replace(",", "")))
    envelope = _envelope((yield Call(_tool(question))))
    # Rows of text are its lines; what the columns are called need not be known.
    sql = f"SELECT * FROM data LIMIT 1 OFFSET {number - 1}"
    row = yield from _first_row(envelope, sql)
    return next(value for value in row.values() if isinstance(value, str))


def line_guessed(question: str) -> Steps:
    """Guess the names of columns first, and mend that by what the failure says."""
    number = int(_asked(_NUMBER, question.replace(",", "")))
    envelope = _envelope((yield Call(_tool(question))))
    guess = f"SELECT text FROM data WHERE number = {number}"
    reply = yield Call("retrieve_context", {"artifactId": envelope["pointer"], "query": guess})
    failure = json.loads(reply)
    told = f"{failure.get('message')} {failure.get('hint')}"
    if not {"line_number", "line"} <= set(re.findall(r"\w+", told)):
        raise StuckError(reply)
    sql = f"SELECT line FROM data WHERE line_number = {number}"
    return _text((yield from _first_row(envelope, sql))["line"])


def raw_error_line(question: str) -> Steps:
    lines = (yield Call(_tool(question))).split("\n")
    return next(line for line in lines if " ERROR " in line)


def error_line(question: str) -> Steps:
    envelope = _envelope((yield Call(_tool(question))))
    told = re.search(r"first error, line [\d,]+: `([^`]*)`(?!…)", envelope["glimpse"])
    if told:
        return told[1]
    reply = yield Call(
        "retrieve_context", {"artifactId": envelope["pointer"], "search": " ERROR ", "limit": 1}
    )
    return cast("str", json.loads(reply)["matches"][0]["snippet"])


def raw_line_count(_: str) -> Steps:
    text = yield Call("read_log")
    return (yield Call("count_lines", {"text": text}))


def line_count(_: str) -> Steps:
    envelope = _envelope((yield Call("read_log")))
    return (yield Call("count_lines", {"text": envelope["pointer"]}))


def raw_mean_amount(_: str) -> Steps:
    orders = json.loads((yield Call("list_orders")))
    return (yield Call("mean_of", {"numbers": [order["amount"] for order in orders]}))


def mean_amount(_: str) -> Steps:
    envelope = _envelope((yield Call("list_orders")), "amount")
    return (yield Call("mean_of", {"numbers": f"{envelope['pointer']}#$[*].amount"}))


def _tool(question: str) -> str:
    """Return the tool that the question names."""
    return _asked(re.compile(r"\b(?:list|read)_\w+"), question)


def _asked(form: re.Pattern[str], question: str) -> str:
    found = form.search(question)
    if found is None:
        raise ValueError(f"the question has no {form.pattern}: {question}")
    return found[0]


def _envelope(shown: str, *words: str) -> dict[str, Any]:
    """Return an envelope that says what the policy will take for granted."""
    envelope = cast("dict[str, Any]", json.loads(shown))
    for word in words:
        if not re.search(rf"\b{word}\b", envelope["glimpse"]):
            raise StuckError(f"no {word} in {envelope['glimpse']}")
    return envelope


def _first_row(envelope: Mapping[str, Any], sql: str) -> Generator[Call, str, Mapping[str, object]]:
    reply = yield Call("retrieve_context", {"artifactId": envelope["pointer"], "query": sql})
    return cast("list[Mapping[str, object]]", _answered(reply, "value"))[0]


def _answered(reply: str, key: str) -> object:
    answer = cast("dict[str, object]", json.loads(reply))
    if key not in answer:
        raise StuckError(reply)
    return answer[key]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
