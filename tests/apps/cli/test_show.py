"""How sizes, ages and marks are written."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from coatcheck import BlockingBank
from coatcheck.apps.cli._lines import human_size
from coatcheck.apps.cli._show import human_age, listing

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
