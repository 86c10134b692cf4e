"""Work on many things at once."""

import anyio
import pytest

from coatcheck.bank._each import on_each


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 200])
async def test_each_item_is_worked_on_once(count: int) -> None:
    seen: list[int] = []

    async def work(item: int) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(item)

    await on_each(range(count), work)

    assert sorted(seen) == list(range(count))


async def test_sixteen_go_on_at_once_and_no_more() -> None:
    going, most = 0, 0

    async def work(_: int) -> None:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await anyio.lowlevel.checkpoint()
        going -= 1

    await on_each(range(100), work)

    assert most == 16


async def test_the_first_failure_is_raised_as_it_is_and_nothing_is_begun_after_it() -> None:
    seen: list[int] = []

    async def work(item: int) -> None:
        seen.append(item)
        if item == 3:
            raise OSError("the third")

    with pytest.raises(OSError, match="the third"):
        await on_each(range(1_000), work)

    assert len(seen) < 100
