"""How sizes, ages and marks are written."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from coatcheck import BlockingBank
from coatcheck.apps.cli._lines import human_size, matches_line
from coatcheck.apps.cli._show import facts, human_age, listing
from coatcheck.apps.cli._show_glimpse import bar, drawn_glimpse
from coatcheck.apps.cli._wire import matches_wire
from coatcheck.records import Glimpse, Match, Matches

from .conftest import Run

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (5_000_000_000_000, "5,000.0 GB"),
    ],
)
def test_size_is_said_in_powers_of_a_thousand(size: int, said: str) -> None:
    assert human_size(size) == said


def test_matches_that_there_was_no_time_to_count_are_so_many_at_least() -> None:
    found = Matches(
        matches=(Match(7, 1, 0, "before x"),),
        match_count=1,
        total_matches=None,
        counted_matches=5_000,
        truncated=True,
        next_search_offset=90,
    )

    wire = matches_wire(found)

    assert (wire["totalMatches"], wire["countedMatches"]) == (None, 5_000)
    assert matches_line(found) == "1 of at least 5,000 matches; next: --offset 90"


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(seconds=-5), "0 s ago"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(seconds=60), "1 min ago"),
        (timedelta(hours=1), "1 h ago"),
        (timedelta(days=1), "1 d ago"),
        (timedelta(days=30), "30 d ago"),
        (timedelta(days=31), "2026-03-31"),
    ],
)
def test_age_is_said_in_its_largest_unit(ago: timedelta, said: str) -> None:
    assert human_age(NOW - ago, NOW) == said


def test_listing_of_the_largest_sizes_fits_80_columns() -> None:
    with BlockingBank("memory:") as bank:
        artifact = bank.put("x", name="[bold]not markup[/bold]", kind="k" * 40)
    console = Console(width=80)

    with console.capture() as captured:
        console.print(listing([artifact], width=80))

    drawn = captured.get()
    assert artifact.pointer in drawn
    assert "[bold]not markup[/bold]" in drawn
    assert all(len(line) <= 80 for line in drawn.splitlines())


def drawn(value: object, width: int) -> str:
    with BlockingBank("memory:") as bank:
        artifact = bank.put(value)
    console = Console(width=width)
    with console.capture() as captured:
        console.print(facts(artifact, ""))
    return captured.get()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("inside", [False, True])
def test_columns_of_a_table_are_drawn_with_bars(width: int, *, inside: bool) -> None:
    rows: list[dict[str, object]] = [
        {"id": at, "status": "late" if at % 4 else "paid", "note": None, "x" * 40: "\x1b[31m" * 9}
        for at in range(2_000)
    ]
    seven = [
        {"n": at % 7 + at % 2 * 0.5, "s": f"value {at % 7}", "on": at % 2 > 0} for at in range(99)
    ]

    shown = drawn({"items": rows} if inside else rows, width)
    many = drawn(seven, width)

    assert "██████    75% late" in shown
    assert "██        25% paid" in shown
    assert "0 … 1,999" in shown
    assert "2,000 null" in shown
    assert "+2 more" in many
    assert "52% false" not in many.split("true")[0]
    assert "\x1b" not in shown
    assert all(len(line) <= width for line in shown.splitlines())


def test_columns_beyond_forty_are_counted() -> None:
    shown = drawn([{f"c{at}": at for at in range(45)}] * 6, 80)

    assert "+5 more columns: see --facts" in shown


def test_levels_of_a_log_are_drawn_as_bars() -> None:
    shown = drawn("INFO x\n" * 60 + "WARN x\n" * 30 + "ERROR x\n" * 30, 80)

    assert "INFO  ████████████             60" in shown
    assert "ERROR ██████                   30" in shown


def test_a_glimpse_of_a_host_is_shown_as_text() -> None:
    console = Console(width=40)
    with console.capture() as captured:
        console.print(drawn_glimpse(Glimpse("9 products\n5 brands", {"table": 7, "levels": 7})))

    assert "9 products" in captured.get()


@pytest.mark.parametrize(("share", "drawn"), [(0, "  "), (1e-9, "▏ "), (0.5, "█ "), (7, "██")])
def test_a_bar_is_within_its_width(share: float, drawn: str) -> None:
    assert bar(share, 2) == drawn


def test_show_gives_the_facts_of_a_glimpse_as_json(coatcheck: Run, tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("id,status\n" + "1,late\n2,paid\n" * 9)
    coatcheck("put", str(path), "--name", "orders")

    facts = coatcheck("show", "orders", "--facts").json

    assert (facts["rows"], facts["columns"][1]["top"][0]["value"]) == (18, "late")
