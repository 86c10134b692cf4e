"""What is kept of what passes is spread over all of it, bounded, and the same each time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._csv import CsvRows
from coatcheck.content._rows import LineRows
from coatcheck.content._sample import BlockSample, Sample

MIB = 1024 * 1024


def kept(units: list[bytes], most: int) -> list[bytes]:
    sample = Sample(most)
    for unit in units:
        sample.add(unit)
    return [*sample.kept, *([] if sample.last is None else [sample.last])]


@given(st.integers(1, 2_000), st.integers(2, 40))
def test_first_and_last_are_kept_and_no_gap_is_much_longer_than_another(
    count: int, most: int
) -> None:
    found = list(map(int, kept([b"%d" % number for number in range(count)], most)))

    assert found == sorted(set(found))
    assert (found[0], found[-1]) == (0, count - 1)
    assert min(count, most // 4) <= len(found) <= most + 1
    gaps = [after - before for before, after in pairwise(found)]
    assert max(gaps, default=1) <= 12 * count / most + 1


@pytest.mark.parametrize("period", [2, 3, 4, 7, 10, 16, 60, 64, 100])
def test_what_repeats_is_sampled_as_often_as_it_is_there(period: int) -> None:
    found = list(map(int, kept([b"%d" % number for number in range(200_000)], 20_000)))

    hits = sum(number % period == 0 for number in found)
    assert hits == pytest.approx(len(found) / period, rel=0.1)


@pytest.mark.parametrize(("size", "most"), [(MIB, 5), (MIB + 1, 4), (4 * MIB, 2), (4 * MIB + 1, 0)])
def test_no_more_than_four_mebibytes_and_the_last_unit_are_kept(size: int, most: int) -> None:
    found = kept([bytes(size)] * 9, 20)

    assert len(found) <= most
    assert bool(found) is bool(most)


def test_of_a_block_of_long_rows_some_of_all_of_it_are_kept() -> None:
    sample = BlockSample(LineRows())
    rows = [b'{"n": %d, "x": "%s"}\n' % (number, b"x" * 4_000) for number in range(1_024)]
    sample.add(b"".join(rows), [0])

    found = b"".join(sample.blocks())
    assert len(found) <= 300 * 1_024
    assert found.splitlines(keepends=True) == rows[::16]


def test_what_stands_before_the_first_block_is_no_row() -> None:
    sample = BlockSample(CsvRows("csv"))
    sample.add(b"a,b\n1,2\n", [4])
    sample.add(b"3,4\n", [])

    assert (sample.blocks(), sample.before) == ([b"1,2\n3,4\n"], b"a,b\n")
