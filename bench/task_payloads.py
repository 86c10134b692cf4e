"""What the tools of the token tasks return: seeded, of the sizes that the rivals were measured on.

Each is made anew from its seed. Sizes are met as nearly as generated records allow.
"""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = list[dict[str, Any]]

ORDERS = 4_000
LATE_ORDERS = 1_315
LOG_LINES = 20_000
ERROR_LINE_NUMBER = 19_612
FLIGHTS = 27_004
CSV_ROWS = 6_567
GRID_SIDE = 128

_TOWNS = ("Bonn", "Brno", "Cork", "Ghent", "Leeds", "Lyon", "Nice", "Oslo", "Turin")
_WORK = (
    "request finished",
    "cache miss, read from disk",
    "connection taken from the pool",
    "row lock released",
    "job taken from the queue",
    "token checked",
)
# Carrier, its share of all flights, and its mean delay at departure in minutes: that of the
# rarest is the highest, so that who forgets to leave out the rare ones is wrong.
_CARRIERS = (
    *(("UA", 172, 8.3), ("B6", 164, 9.5), ("EV", 148, 24.2), ("DL", 137, 3.8), ("AA", 103, 6.9)),
    *(("MQ", 84, 6.5), ("US", 59, 1.7), ("9E", 58, 16.9), ("WN", 37, 11.0), ("VX", 12, 3.3)),
    *(("FL", 12, 2.0), ("AS", 2.3, 7.4), ("YV", 1.7, 20.1), ("F9", 2.2, 10.0), ("HA", 1.2, 54.4)),
    ("OO", 0.1, 67.0),
)
_ORIGINS = ("EWR", "JFK", "LGA")
_DESTINATIONS = (
    *("ATL", "ORD", "BOS", "LAX", "MCO", "CLT", "FLL", "SFO", "MIA", "DCA", "DTW"),
    *("DFW", "RDU", "TPA", "DEN", "IAH", "MSP", "PBI", "BNA", "SJU", "STL", "CLE"),
)


@cache
def orders() -> Rows:
    """Return orders with a nested customer; exactly 1,315 of them are late."""
    source = random.Random(7)
    others = [source.choice(("paid", "open", "shipped")) for _ in range(ORDERS - LATE_ORDERS)]
    statuses = ["late"] * LATE_ORDERS + others
    source.shuffle(statuses)
    return [
        {
            "id": f"ord-{source.getrandbits(64):016x}",
            "customer": {"id": source.randrange(1, 100), "city": source.choice(_TOWNS)},
            "status": status,
            "amount": round(source.random() * 500, 2),
            "day": f"2026-{source.randrange(12) + 1:02}-{source.randrange(28) + 1:02}",
        }
        for status in statuses
    ]


@cache
def log_lines() -> list[str]:
    """Return the lines of a log; one of them, near the end, is an error."""
    source = random.Random(11)
    time = datetime(2026, 3, 1, 8, tzinfo=UTC)
    lines: list[str] = []
    for number in range(1, LOG_LINES + 1):
        time += timedelta(milliseconds=source.randrange(40, 900))
        stamp = f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"
        if number == ERROR_LINE_NUMBER:
            lines.append(f"{stamp} ERROR [billing] charge refused: card expired, order 48151623")
            continue
        level = source.choices(("INFO", "DEBUG", "WARN"), (80, 15, 5))[0]
        work = source.choice(_WORK)
        lines.append(f"{stamp} {level} [w{source.randrange(16)}] {work}, {_took(source)}")
    return lines


def _took(source: random.Random) -> str:
    return f"{source.randrange(1, 900)} ms, id {source.getrandbits(20):05x}"


@cache
def flights() -> Rows:
    """Return typed rows shaped as those of nycflights13, of one January."""
    source = random.Random(13)
    weights = [share for _, share, _ in _CARRIERS]
    day_seconds = sorted(source.randrange(31 * 19 * 60) for _ in range(FLIGHTS))
    return [
        _flight(source, minute, *source.choices(_CARRIERS, weights)[0]) for minute in day_seconds
    ]


def _flight(
    source: random.Random, minute_of_month: int, carrier: str, _: float, delay: float
) -> dict[str, Any]:
    day, minute = divmod(minute_of_month, 19 * 60)
    planned = 5 * 60 + minute
    late = None if source.random() < 0.02 else round(source.expovariate(1 / (delay + 6)) - 6)
    air = source.randrange(30, 360)
    arrival = planned + air + 30
    came = None if late is None else late + source.randrange(-25, 15)
    return {
        "year": 2013,
        "month": 1,
        "day": day + 1,
        "dep_time": None if late is None else _clock(planned + late),
        "sched_dep_time": _clock(planned),
        "dep_delay": late,
        "arr_time": None if came is None else _clock(arrival + came),
        "sched_arr_time": _clock(arrival),
        "arr_delay": came,
        "carrier": carrier,
        "flight": source.randrange(1, 6_000),
        "tailnum": f"N{source.randrange(100, 1_000)}{source.choice('ABCDEFGH')}{carrier[0]}",
        "origin": source.choice(_ORIGINS),
        "dest": source.choice(_DESTINATIONS),
        "air_time": None if late is None else air,
        "distance": air * 7 + source.randrange(60),
        "hour": planned // 60,
        "minute": planned % 60,
        "time_hour": f"2013-01-{day + 1:02}T{planned // 60:02}:00:00Z",
    }


def _clock(minutes: int) -> int:
    hour, minute = divmod(minutes % (24 * 60), 60)
    return hour * 100 + minute


@cache
def csv_text() -> str:
    """Return readings of sensors as CSV."""
    source = random.Random(17)
    time = datetime(2026, 5, 1, tzinfo=UTC)
    lines = ["time,sensor,room,temperature,humidity,state"]
    for _ in range(CSV_ROWS):
        time += timedelta(seconds=source.randrange(20, 120))
        sensor, room = source.randrange(140), source.choice("ABCDE")
        room += str(source.randrange(100, 400))
        temperature, humidity = source.gauss(21, 3), source.gauss(45, 8)
        state = source.choice(("ok", "ok", "low", "off", "high"))
        lines.append(
            f"{time:%Y-%m-%dT%H:%M:%S},s-{sensor:03},{room},{temperature:.2f},{humidity:.1f},{state}"
        )
    return "\n".join(lines) + "\n"


def grid() -> NDArray[np.float64]:
    """Return random floats in a cube, as numpy has them."""
    return np.random.default_rng(0).random((GRID_SIDE, GRID_SIDE, GRID_SIDE))


def one_line(rows: Sequence[object]) -> str:
    """Return rows as JSON on one line."""
    return json.dumps(rows, separators=(",", ":"))


def indented(rows: Sequence[object]) -> str:
    """Return rows as JSON, two spaces deeper with each level."""
    return json.dumps(rows, indent=2)
