"""What a model is shown of a tool that returns a stream."""

import io
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from coatcheck import Bank, Envelope, Limits, Mirror, mirror
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore


class Down(MemoryStore):
    """A store that takes one piece of a payload, and fails."""

    def __init__(self, failures: int = 1_000) -> None:
        super().__init__()
        self.failures = failures

    async def put(self, key: str, payload: bytes) -> None:
        if self.failures:
            raise StoreUnavailableError("no room")
        await super().put(key, payload)

    async def put_stream(self, key: str, chunks: Iterable[bytes | memoryview]) -> None:
        next(iter(chunks))
        raise StoreUnavailableError("no room")


def rows(count: int) -> Iterator[dict[str, object]]:
    for number in range(count):
        yield {"row": number, "pad": "x" * 83}


def size(count: int) -> int:
    return len(str(list(range(count)))) - max(0, count - 1)  # compact: no space after a comma


def numbered(count: int) -> Iterator[int]:
    return iter(range(count))


def test_a_stream_is_offloaded_from_the_inline_limit_on() -> None:
    bank = Bank(MemoryStore())
    limit = size(2_001)
    for count in (2_000, 2_001):
        shown = mirror(partial(numbered, count), bank, inline_bytes=limit)()
        assert isinstance(shown, Envelope) is (count == 2_001)
        if isinstance(shown, Envelope):
            assert shown.size_bytes == limit
        else:
            assert shown == list(range(count))


async def test_a_stream_that_goes_on_after_the_limit_is_banked_whole() -> None:
    bank = Bank(MemoryStore())
    shown = await Mirror(bank).offload(rows(20_000), tool="rows", call_id="7")

    assert isinstance(shown, Envelope)
    assert await bank.get("rows_7") == list(rows(20_000))
    again = await Mirror(bank).offload(rows(20_000), tool="rows", call_id="7")
    assert str(again) == str(shown)


async def test_a_limit_of_nothing_always_gives_a_pointer_and_never_gives_none() -> None:
    bank = Bank(MemoryStore(), limits=Limits(per_tool={"always": 0}, never=frozenset({"never"})))

    always = await Mirror(bank).offload(iter([1]), tool="always")
    never = await Mirror(bank).offload(rows(20_000), tool="never")
    assert isinstance(always, Envelope)
    assert await bank.get(always.pointer) == [1]
    assert never == list(rows(20_000))


async def test_small_limits_still_compare_with_the_envelope() -> None:
    shown = await Mirror(Bank(MemoryStore()), Limits(inline_bytes=10)).offload(iter(range(20)))
    assert shown == list(range(20))

    text = io.StringIO("\x01" * 6_000)
    bank = Bank(MemoryStore(), limits=Limits(inline_bytes=10, preview_chars=4_000))
    shown = await Mirror(bank).offload(text)
    assert isinstance(shown, Envelope)
    assert len(str(shown).encode()) < 6_000


def test_an_open_file_is_its_text_and_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\r\ntwo\r\n")
    opened: list[io.IOBase] = []

    def report(mode: str) -> object:
        file = path.open(mode)
        assert isinstance(file, io.IOBase)
        opened.append(file)
        return file

    mirrored = mirror(report, Bank(MemoryStore()))
    assert mirrored("r") == "one\r\ntwo\r\n"
    assert mirrored("rb") == b"one\r\ntwo\r\n"
    path.write_bytes(b"line\r\n" * 20_000)
    shown = mirrored("r")
    assert isinstance(shown, Envelope)
    assert (shown.content_type, shown.size_bytes) == ("text/plain", 120_000)
    assert all(file.closed for file in opened)


def test_a_path_that_a_tool_returns_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("secret")

    assert mirror(lambda: tmp_path / "a.txt", Bank(MemoryStore()))() == tmp_path / "a.txt"


async def test_generators_of_every_make_are_shown() -> None:
    bank = Bank(MemoryStore())

    async def numbers(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    async def returned(count: int) -> object:
        return numbers(count)

    def plain(count: int) -> object:
        return numbers(count)

    class Tool:
        async def __call__(self) -> object:
            return iter([1])

    assert await mirror(numbers, bank)(2) == [0, 1]
    assert await mirror(partial(numbers, 2), bank)() == [0, 1]
    assert await mirror(returned, bank)(2) == [0, 1]
    assert await mirror(plain, bank)(2) == [0, 1]
    assert await mirror(Tool(), bank)() == [1]
    assert await mirror(returned, bank, to_model_output=lambda _: iter([b"a", b"b"]))(2) == b"ab"
    assert mirror(lambda: iter([b""]), bank)() == b""


async def test_results_of_a_turn_may_be_streams() -> None:
    bank = Bank(MemoryStore(), limits=Limits(turn_bytes=6_000))
    shown = await Mirror(bank).offload_turn([(iter(range(1_500)), "a"), ("x", "b")])

    assert isinstance(shown[0], Envelope)
    assert await bank.get(shown[0].pointer) == list(range(1_500))


def failing(count: int) -> Iterator[object]:
    yield from rows(count)
    raise KeyError("the cursor is gone")


@pytest.mark.parametrize("store", [MemoryStore, Down])
@pytest.mark.parametrize("count", [0, 10, 20_000])
async def test_what_the_tool_itself_raises_passes_through(
    store: Callable[[], MemoryStore], count: int
) -> None:
    bank = Bank(store())

    with pytest.raises(KeyError, match="cursor") as caught:
        await Mirror(bank).offload(failing(count), tool="rows")
    assert caught.value.__notes__[0].startswith(
        f"banked nothing: the stream failed after {count:,}"
    )


@pytest.mark.parametrize(("count", "is_shown"), [(3, True), (20_000, False)])
async def test_an_item_without_an_encoding_is_told(count: int, *, is_shown: bool) -> None:
    marker = object()

    def items() -> Iterator[object]:
        yield from rows(count)
        yield marker

    shown = await Mirror(Bank(MemoryStore())).offload(items())

    if is_shown:
        assert shown == [*rows(count), marker]
    else:
        assert isinstance(shown, str)
        assert "was not kept" in shown
        assert shown.startswith('[{"row":0')


@pytest.mark.parametrize("failures", [1_000, 0])
async def test_what_could_not_be_kept_is_shown_whole_or_head_and_tail_of_all(
    failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    mirrored = Mirror(Bank(Down(failures)))
    with caplog.at_level(logging.WARNING, "coatcheck.mirror"):
        assert await mirrored.offload(rows(1_000), tool="rows") == list(rows(1_000))
        small = await mirrored.offload(rows(20_000), tool="rows")
        large = await mirrored.offload(rows(100_000), tool="rows")
        binary = await mirrored.offload(b"\0" * 100_000 for _ in range(60))

    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4
    for shown, count in ((small, 20_000), (large, 100_000)):
        assert isinstance(shown, str)
        assert shown.startswith('[{"row":0,')
        assert shown.endswith(f'"row":{count - 1},"pad":"{"x" * 83}"' + "}]")
        assert "was not kept" in shown
        assert len(shown) < 51_000
    assert binary == "[6,000,000 bytes of binary output, not shown; they were not kept]"
