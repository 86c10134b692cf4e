"""Messages for a client: in order, once, and kept within bounds for one that comes back."""

import pytest

from coatcheck.apps.proxy._http_streams import Reading, Stream, Streams

NOTE = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'
ASK = b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n'


async def read_all(reading: Reading) -> list[bytes]:
    """Return what is there now, to the end."""
    reading.stream.close()
    found: list[bytes] = []
    while (line := await reading.next()) is not None:
        found.append(line.data)
    return found


async def test_each_reader_goes_on_where_the_one_before_it_was() -> None:
    stream = Stream("s")
    for number in range(4):
        await stream.send(b"%d" % number)
    first = stream.read()
    await first.next()

    second = stream.read()

    assert await first.next() is None
    assert await read_all(second) == [b"1", b"2", b"3"]


async def test_reader_may_begin_after_any_message_that_there_was() -> None:
    stream = Stream("s")
    for number in range(4):
        await stream.send(b"%d" % number)

    assert await read_all(stream.read(2)) == [b"2", b"3"]
    assert await read_all(stream.read(0)) == [b"0", b"1", b"2", b"3"]
    assert await read_all(stream.read(4)) == []
    with pytest.raises(LookupError):
        stream.read(5)


async def test_of_what_was_read_a_mebibyte_is_kept_and_the_last_message_always() -> None:
    stream = Stream("s")
    for _ in range(6):
        await stream.send(b"x" * (1 << 19))
    await stream.send(b"y" * (1 << 22))
    reading = stream.read()
    for _ in range(6):
        await reading.next()

    assert len(await read_all(stream.read(0))) == 3
    assert [each[:1] for each in await read_all(stream.read(0))] == [b"y"]
    assert stream.kept_bytes == 1 << 22


async def test_stream_without_a_name_keeps_nothing_that_was_read() -> None:
    stream = Stream()
    await stream.send(NOTE)
    reading = stream.read()

    assert await read_all(reading) == [NOTE]
    assert stream.kept_bytes == 0


async def test_of_too_many_messages_that_wait_requests_are_kept_and_they_too_have_an_end() -> None:
    stream = Stream("s")
    for _ in range(1_001):
        await stream.send(NOTE)
    for _ in range(1_000):
        await stream.send(ASK)

    with pytest.raises(ConnectionError):
        await stream.send(ASK)
    assert await read_all(stream.read()) == [NOTE] * 1_000 + [ASK] * 1_000


async def test_message_after_the_last_is_not_taken() -> None:
    stream = Stream("s")
    stream.finish(b"answer")
    stream.finish(b"another")

    with pytest.raises(ConnectionError):
        await stream.send(NOTE)
    assert await read_all(stream.read()) == [b"answer"]


async def test_the_oldest_streams_that_nobody_reads_are_let_go() -> None:
    streams, owner = Streams(most_bytes=2_000), object()
    kept = [streams.new() for _ in range(4)]
    kept[0].read()
    for each in kept:
        await each.send(b"x" * 1_000)
        streams.keep(owner, each)

    assert [streams.find(owner, str(n)) for n in range(1, 5)] == [kept[0], None, kept[2], kept[3]]
    with pytest.raises(ConnectionError):
        await kept[1].send(NOTE)


async def test_streams_are_found_by_their_session_alone_until_it_is_over() -> None:
    streams, owner, other = Streams(), object(), object()
    stream = streams.new()
    streams.keep(owner, stream)

    assert streams.find(other, stream.name) is None
    assert streams.find(owner, stream.name) is stream
    streams.forget(owner)
    assert streams.find(owner, "1") is None
