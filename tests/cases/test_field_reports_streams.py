"""Reports on tools that return a stream: the model sees what it yields, never what it is."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from coatcheck import Bank, Envelope, mirror

Show = Callable[[Bank, object], Awaitable[Any]]


async def test_br_045_an_async_generator_tool_shows_its_items_in_order(bank: Bank) -> None:
    async def items() -> AsyncIterator[str]:
        for number in range(3):
            yield f"item {number}"

    assert await mirror(items, bank)() == ["item 0", "item 1", "item 2"]


async def test_br_045_a_generator_of_many_numbers_is_stored_whole(bank: Bank) -> None:
    def numbers() -> Iterator[int]:
        yield from range(100_000)

    shown = mirror(numbers, bank)()

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == list(range(100_000))
    assert "100,000" in str(shown)
    assert "generator object" not in str(shown)


async def test_br_045_a_returned_generator_is_shown_by_what_it_yields(
    bank: Bank, show: Show
) -> None:
    async def items(count: int) -> AsyncIterator[dict[str, int]]:
        for number in range(count):
            yield {"id": number}

    assert await show(bank, ({"id": number} for number in range(3))) == [
        {"id": n} for n in range(3)
    ]
    for source in ({"id": number} for number in range(9_000)), items(9_000):
        shown: object = await show(bank, source)
        if inspect.isawaitable(shown):
            shown = await shown
        assert isinstance(shown, Envelope)
        assert "generator object" not in str(shown)
        assert await bank.get(shown.pointer) == [{"id": number} for number in range(9_000)]
