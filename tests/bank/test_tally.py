"""When a running total is to be counted anew, and when there is to be made room."""

from coatcheck.bank._tally import Tally

MINUTE_NS = 60 * 1_000_000_000


def test_a_total_is_stale_after_a_minute_or_when_the_clock_went_back() -> None:
    tally = Tally(10, 5_000)

    assert not tally.is_stale(5_000, 100)
    assert not tally.is_stale(5_000 + MINUTE_NS - 1, 100)
    assert tally.is_stale(5_000 + MINUTE_NS, 100)
    assert tally.is_stale(4_999, 100)


def test_a_total_is_stale_once_more_than_a_tenth_of_the_quota_was_put() -> None:
    tally = Tally(10, 0)

    tally.add(10)
    assert (tally.size_bytes, tally.is_stale(0, 100)) == (20, False)
    tally.add(1)
    assert (tally.size_bytes, tally.is_stale(0, 100)) == (21, True)


def test_a_total_is_over_above_the_quota_and_not_at_it() -> None:
    assert not Tally(100, 0).is_over(100)
    assert Tally(101, 0).is_over(100)


def test_where_live_runs_hold_too_much_room_is_looked_for_again_a_tenth_later() -> None:
    assert not Tally(160, 0, held_bytes=150).is_over(100)
    assert Tally(161, 0, held_bytes=150).is_over(100)
