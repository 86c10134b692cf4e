import asyncio
import os
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._lines import LineReader, LineWriter, read_lines, write_lines


@pytest.fixture
def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)


async def all_of(reader: LineReader) -> list[bytes]:
    return [line async for line in reader]


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))),
    sizes=st.lists(st.integers(1, 9), min_size=1),
)
def test_lines_come_whole_however_they_are_cut(lines: list[bytes], sizes: list[int]) -> None:
    async def read() -> list[bytes]:
        reader, stream, at = LineReader(), b"\n".join(lines), 0
        for index in range(len(stream)):
            size = sizes[index % len(sizes)]
            reader.data_received(stream[at : at + size])
            at += size
        reader.eof_received()
        return await all_of(reader)

    assert asyncio.run(read()) == [line for line in lines if line.strip()]


async def test_only_the_last_line_is_torn_and_only_where_it_has_no_end() -> None:
    whole, torn = LineReader(), LineReader()
    whole.data_received(b"one\ntwo\n")
    torn.data_received(b"one\ntw")
    for reader in (whole, torn):
        reader.eof_received()

    seen = [[(line, reader.is_torn) async for line in reader] for reader in (whole, torn)]

    assert seen == [[(b"one", False), (b"two", False)], [(b"one", False), (b"tw", True)]]


@pytest.mark.parametrize(("length", "kept"), [(10, 10), (11, 11), (12, 12), (5_000, 1_024)])
async def test_of_a_line_that_is_too_long_the_head_is_kept(length: int, kept: int) -> None:
    reader = LineReader(longest_bytes=10 if length > 2_000 else length)

    reader.data_received(b"x" * length + b"\nnext\n")
    reader.eof_received()

    assert [len(line) for line in await all_of(reader)] == [kept, 4]


async def test_lines_pass_through_a_pipe_both_ends_of_which_wait_for_the_other(
    pipe: tuple[IO[bytes], IO[bytes]],
) -> None:
    reader, writer = await read_lines(pipe[0]), await write_lines(pipe[1])
    sent = [b"%d:" % index + b"x" * 300_000 for index in range(40)]

    async def send() -> None:
        for line in sent:
            await writer.send(line + b"\n")
        writer.close()

    sending = asyncio.create_task(send())
    got = await all_of(reader)
    await sending
    reader.close()

    assert got == sent


async def test_writer_waits_while_nobody_reads(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    writer = await write_lines(pipe[1])
    sending = asyncio.create_task(writer.send(b"x" * 5_000_000 + b"\n"))
    await asyncio.sleep(0)

    assert writer.is_behind
    assert not sending.done()
    reader = await read_lines(pipe[0])
    line = await anext(reader)
    await sending
    writer.close()
    reader.close()

    assert len(line) == 5_000_000


async def test_writer_whose_reader_has_gone_says_so(pipe: tuple[IO[bytes], IO[bytes]]) -> None:
    writer: LineWriter = await write_lines(pipe[1])

    pipe[0].close()
    await writer.is_lost.wait()

    with pytest.raises(ConnectionError):
        await writer.send(b"x\n")


async def test_a_file_that_is_no_pipe_is_read_and_closed(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"one\ntwo")
    file = (tmp_path / "lines").open("rb", buffering=0)

    lines = await all_of(await read_lines(file))

    assert lines == [b"one", b"two"]
    assert file.closed
