import asyncio
from contextlib import aclosing

import pytest

from coatcheck.runtime import Chunk
from coatcheck.runtime._merged import Emit, merged


async def test_events_come_in_order_and_then_the_end() -> None:
    async def produce(emit: Emit) -> None:
        for number in range(200):
            await emit(Chunk(content=f"{number}"))

    events = [event async for event in merged(produce)]

    assert events == [Chunk(content=f"{number}") for number in range(200)]


async def test_nobody_runs_far_ahead_of_who_reads() -> None:
    emitted = 0

    async def produce(emit: Emit) -> None:
        nonlocal emitted
        for _ in range(1_000):
            await emit(Chunk(content="x"))
            emitted += 1

    async with aclosing(merged(produce)) as events:
        await anext(events)
        for _ in range(300):
            await asyncio.sleep(0)

        assert 1 <= emitted < 100


async def test_what_was_emitted_before_an_exception_is_read_first() -> None:
    async def produce(emit: Emit) -> None:
        await emit(Chunk(content="before"))
        raise LookupError

    events = merged(produce)

    assert await anext(events) == Chunk(content="before")
    with pytest.raises(LookupError):
        await anext(events)


async def test_events_of_tasks_that_run_at_once_are_merged() -> None:
    async def produce(emit: Emit) -> None:
        await asyncio.gather(*(emit(Chunk(content=f"{number}")) for number in range(5)))

    events = [event async for event in merged(produce)]

    assert len(events) == 5


async def test_who_stops_reading_ends_the_work() -> None:
    ended = asyncio.Event()

    async def produce(emit: Emit) -> None:
        try:
            while True:
                await emit(Chunk(content="x"))
        finally:
            ended.set()

    async with aclosing(merged(produce)) as events:
        await anext(events)
        assert not ended.is_set()

    assert ended.is_set()


async def test_an_error_after_nobody_reads_any_more_is_nobodys() -> None:
    async def produce(emit: Emit) -> None:
        try:
            await emit(Chunk(content="x"))
            await asyncio.Event().wait()
        finally:
            raise LookupError

    async with aclosing(merged(produce)) as events:
        first = await anext(events)

    assert first == Chunk(content="x")


async def test_to_cancel_the_reader_ends_the_work() -> None:
    ended = asyncio.Event()

    async def produce(emit: Emit) -> None:
        try:
            await emit(Chunk(content="x"))
            await asyncio.Event().wait()
        finally:
            ended.set()

    read = asyncio.Event()

    async def reader() -> None:
        async with aclosing(merged(produce)) as events:
            async for _ in events:
                read.set()

    task = asyncio.create_task(reader())
    await read.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended.is_set()


async def test_work_that_waits_for_nothing_is_followed_event_by_event() -> None:
    emitted = 0

    async def produce(emit: Emit) -> None:
        nonlocal emitted
        for number in range(10):
            await emit(Chunk(content=f"{number}"))
            emitted += 1

    before = [emitted async for _ in merged(produce)]

    assert before == list(range(10))


async def test_several_that_emit_keep_their_order_before_a_slow_reader() -> None:
    emitted, read, ahead = 0, 0, 0

    async def tell(emit: Emit, name: str) -> None:
        nonlocal emitted, ahead
        for number in range(60):
            await emit(Chunk(node_id=name, content=f"{number}"))
            emitted += 1
            ahead = max(ahead, emitted - read)

    async def produce(emit: Emit) -> None:
        await asyncio.gather(*(tell(emit, name) for name in "abcde"))

    told: dict[str | None, list[str]] = {}
    async for event in merged(produce):
        assert isinstance(event, Chunk)
        read += 1
        told.setdefault(event.node_id, []).append(event.content)
        if len(told) == 1:
            for _ in range(400):
                await asyncio.sleep(0)

    assert told == {name: [f"{number}" for number in range(60)] for name in "abcde"}
    assert 50 < ahead <= 64
