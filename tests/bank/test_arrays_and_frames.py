import json
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from pydantic import BaseModel

from coatcheck import Bank, BlockingBank, Envelope, Limits, mirror
from coatcheck.content import loads
from coatcheck.errors import BinaryPayloadError, DamagedPayloadError, InvalidArgumentError
from coatcheck.mirror import Mirror
from coatcheck.stores import MemoryStore, Store
from coatcheck.tools import retrieval_tools

pd: Any = import_module("pandas")
pl: Any = import_module("polars")
pa: Any = import_module("pyarrow")

ROWS = [{"a": 1, "s": "x"}, {"a": 2, "s": "y"}]


class Row(BaseModel):
    a: int
    s: str


@pytest.fixture
def bank(store: Store) -> Bank:
    return Bank(store)


@given(array=hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_dims=3, max_side=4)))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_get_gives_the_bits_that_were_put_on_every_store(
    store: Store, array: NDArray[Any]
) -> None:
    bank = Bank(store)
    artifact = await bank.put(array)

    for reader in (bank, Bank(store)):
        for _ in range(2):
            got = await reader.get(artifact.pointer, as_type=np.ndarray)
            assert (got.dtype, got.shape) == (array.dtype, array.shape)
            assert got.tobytes() == array.tobytes()
            assert not got.flags.writeable


async def test_one_process_hands_an_array_on_without_a_copy(bank: Bank) -> None:
    array = np.arange(10_000.0)
    artifact = await bank.put(array)

    first = await bank.get(artifact.pointer, as_type=np.ndarray)
    second = await bank.get(artifact.pointer, as_type=np.ndarray)
    first.resize((100, 100), refcheck=False)

    assert np.shares_memory(first, second)
    assert not np.shares_memory(first, array)
    assert (first.shape, second.shape) == ((100, 100), (10_000,))


async def test_what_becomes_of_an_array_after_put_is_not_seen(bank: Bank) -> None:
    array = np.arange(10_000.0)
    artifact = await bank.put(array)
    array[:] = -1

    assert (await bank.get(artifact.pointer, as_type=np.ndarray))[7] == 7
    assert (await Bank(bank._shared.store).get(artifact.pointer, as_type=np.ndarray))[7] == 7  # noqa: SLF001


async def test_an_owned_array_is_handed_on_as_it_lies_in_memory(store: Store) -> None:
    array = np.asfortranarray(np.arange(600_000.0).reshape(-1, 3))[::2]
    artifact = await (bank := Bank(store)).put(array, owned=True, content_type="application/x-npy")

    got = await bank.get(artifact.pointer, as_type=np.ndarray)
    again = await Bank(store).get(artifact.pointer, as_type=np.ndarray)

    assert np.shares_memory(got, array)
    assert not got.flags.writeable
    assert np.array_equal(again, array)


async def test_an_array_larger_than_the_cache_is_read_from_the_store(store: Store) -> None:
    bank = Bank(store, limits=Limits(cache_bytes=1_000))
    artifact = await bank.put(np.arange(1_000))

    first = await bank.get(artifact.pointer, as_type=np.ndarray)

    assert np.array_equal(first, np.arange(1_000))


async def test_an_array_as_other_types(bank: Bank) -> None:
    artifact = await bank.put(np.array([[1.5, 2.0], [3.0, 4.0]]))
    line = await bank.put(np.array([1, 2]))

    assert await bank.get(artifact.pointer, as_type=list[list[float]]) == [[1.5, 2.0], [3.0, 4.0]]
    assert await bank.get(line.pointer, as_type=list[float]) == [1.0, 2.0]
    assert await bank.get(line.pointer, as_type=list[int]) == [1, 2]
    assert await bank.get(line.pointer, as_type=bytes) == await bank.payload(line.pointer)
    declared = await bank.get(line.pointer, as_type=NDArray[np.int64] | None)
    assert isinstance(declared, np.ndarray)
    with pytest.raises(InvalidArgumentError, match="binary"):
        await bank.get(line.pointer, as_type=str)
    with pytest.raises(InvalidArgumentError, match="no pandas DataFrame"):
        await bank.get(line.pointer, as_type=pd.DataFrame)


@pytest.mark.parametrize(
    "make",
    [lambda: pd.DataFrame(ROWS), lambda: pl.DataFrame(ROWS), lambda: pa.Table.from_pylist(ROWS)],
)
async def test_a_frame_as_other_types(bank: Bank, make: Callable[[], Any]) -> None:
    artifact = await bank.put(frame := make())

    got: Any = await bank.get(artifact.pointer)
    assert type(got) is type(frame)
    assert got.equals(frame)
    assert await bank.get(artifact.pointer, as_type=list[dict[str, Any]]) == ROWS
    assert await bank.get(artifact.pointer, as_type=list[Row]) == [Row(**row) for row in ROWS]  # type: ignore[arg-type]
    assert (await bank.get(artifact.pointer, as_type=pl.DataFrame)).equals(pl.DataFrame(ROWS))
    assert (await bank.get(artifact.pointer, as_type=pd.DataFrame)).equals(pd.DataFrame(ROWS))


async def test_each_reader_gets_a_frame_of_its_own(bank: Bank) -> None:
    artifact = await bank.put(pd.DataFrame({"a": [1.0, 2.0]}))

    first: Any = await bank.get(artifact.pointer)
    first.loc[0, "a"] = 99.0

    assert (await bank.get(artifact.pointer, as_type=pd.DataFrame)).loc[0, "a"] == 1.0


async def test_the_envelope_of_a_grid_is_at_most_100_tokens(bank: Bank) -> None:
    count: Callable[[str], int] = import_module("rs_bpe").openai.o200k_base().count
    grid = np.random.default_rng(0).normal(size=(128, 128, 128))

    async def field() -> NDArray[np.float64]:
        return grid

    shown = await mirror(field, bank, owned=True)()

    assert isinstance(shown, Envelope)
    wire = json.loads(str(shown))
    assert list(wire) == ["pointer", "preview", "sizeBytes", "note", "glimpse"]
    assert (wire["preview"], wire["sizeBytes"]) == ("", 128 + 8 * 128**3)
    assert wire["note"] == f'retrieve_context({{"artifactId":"{shown.pointer}"}})'
    assert wire["glimpse"] == "128x128x128 float64, -5.35 to 5"
    # As the message that a model is sent, where its quotes are escaped once more.
    message = {"role": "tool", "content": str(shown)}
    assert count(json.dumps(message, separators=(",", ":"))) <= 100
    assert count(wire["glimpse"]) <= 25


async def test_the_envelope_of_a_frame_shows_its_columns_and_first_rows(bank: Bank) -> None:
    def orders() -> Any:
        return pl.DataFrame({"id": range(5_000), "city": ["Graz", "Linz"] * 2_500})

    shown = await Mirror(bank).offload(orders())

    assert isinstance(shown, Envelope)
    assert shown.content_type == "application/vnd.apache.arrow.file"
    assert shown.preview.startswith('[{"id":0,"city":"Graz"}')
    assert shown.preview.endswith("… (5,000 rows)")
    assert str(shown.glimpse).startswith("5,000 rows, 2 columns")
    artifact = await bank.find(shown.pointer)
    assert artifact is not None
    assert artifact.row_count == 5_000


def test_a_small_array_or_frame_passes_a_mirrored_tool_as_the_object_it_is() -> None:
    array, frame = np.arange(10), pd.DataFrame({"a": [1]})

    def give(which: str) -> object:
        return array if which == "array" else frame

    mirrored = mirror(give, Bank(MemoryStore()))

    assert mirrored("array") is array
    assert mirrored("frame") is frame


def test_arrays_and_frames_go_from_tool_to_tool_by_pointer() -> None:
    def make() -> NDArray[np.float64]:
        return np.arange(100_000.0)

    def half(numbers: np.ndarray) -> np.ndarray:
        return numbers[::2]

    def total(numbers: Annotated[NDArray[np.float64], "all of them"]) -> float:
        return float(numbers.sum())

    def rows(items: list[float]) -> int:
        return len(items)

    bank = Bank(MemoryStore())
    made = mirror(make, bank)()
    halved = mirror(half, bank)(made.pointer)

    assert mirror(total, bank)(halved.pointer) == float(np.arange(100_000.0)[::2].sum())
    assert mirror(rows, bank)(halved.pointer) == 50_000


def test_a_frame_arrives_as_the_library_that_a_tool_declares() -> None:
    def make() -> Any:
        return pd.DataFrame({"a": range(20_000)})

    def polars_tool(frame: Any) -> str:
        return f"{type(frame).__module__.partition('.')[0]} {frame.height}"

    # Three of the four libraries have no types that a checker could know.
    polars_tool.__annotations__["frame"] = pl.DataFrame

    def rows_tool(rows: list[dict[str, int]]) -> int:
        return len(rows)

    bank = Bank(MemoryStore())
    pointer = mirror(make, bank)().pointer

    assert mirror(polars_tool, bank)(pointer) == "polars 20000"
    assert mirror(rows_tool, bank)(pointer) == 20_000


async def test_arrays_are_read_by_row_and_by_nothing_else(bank: Bank) -> None:
    artifact = await bank.put(np.arange(60_000).reshape(-1, 2))

    page = await bank.read(artifact.pointer, 10_000, 2, unit="rows")

    assert page.content == "[[20000,20001],[20002,20003]]"
    for unit in ("chars", "lines"):
        with pytest.raises(BinaryPayloadError):
            await bank.read(artifact.pointer, unit=unit)
    with pytest.raises(BinaryPayloadError):
        await bank.search(artifact.pointer, "1")
    assert (await bank.read(artifact.pointer, 0, 6, unit="bytes")).content == b"\x93NUMPY"


async def test_retrieve_context_reads_rows_of_what_is_no_text(bank: Bank) -> None:
    (retrieve,) = retrieval_tools(bank)
    array = await bank.put(np.arange(60_000))
    frame = await bank.put(pa.table({"a": range(30_000)}))
    blob = await bank.put(b"\x00" * 100)

    async def reply(**arguments: object) -> dict[str, Any]:
        found = loads((await retrieve.call(arguments)).encode())
        return cast("dict[str, Any]", found)

    assert await reply(artifactId=array.pointer, offset=5, limit=3) == {
        "content": "[5,6,7]",
        "totalSize": 60_000,
        "hasMore": True,
        "offset": 5,
        "limit": 3,
        "unit": "rows",
        "nextOffset": 8,
    }
    assert (await reply(artifactId=frame.pointer, offset=29_999))["content"] == '[{"a":29999}]'
    assert (await reply(artifactId=blob.pointer))["error"] == "binary"
    assert (await reply(artifactId=array.pointer, search="1"))["error"] == "binary"
    assert (await reply(artifactId=array.pointer, offset=-1))["error"] == "invalid-argument"


async def test_rows_of_a_payload_that_is_gone_or_damaged(store: Store) -> None:
    bank, other = Bank(store), Bank(store)
    artifact = await bank.put(np.arange(5_000))
    await bank.read(artifact.pointer, unit="rows")
    (key,) = [key async for key in store.keys("s/default/payloads/")]

    await store.put(key, b"x" * artifact.size_bytes)
    with pytest.raises(DamagedPayloadError):
        await bank.read(artifact.pointer, unit="rows")
    await other.delete(artifact.pointer)
    with pytest.raises(LookupError):
        await bank.read(artifact.pointer, unit="rows")


async def test_a_content_type_that_the_payload_has_not_is_refused(bank: Bank) -> None:
    for owned in (False, True):
        with pytest.raises(InvalidArgumentError, match="image/png"):
            await bank.put(np.arange(9), content_type="image/png", owned=owned)


async def test_a_key_gives_the_same_artifact_to_an_equal_array(bank: Bank) -> None:
    first = await bank.put(np.arange(9), key="k", owned=True)
    second = await bank.put(np.arange(9), key="k")

    assert first.pointer == second.pointer


def test_code_without_a_loop_puts_owned_arrays() -> None:
    array = np.arange(1_000)

    with BlockingBank("memory:") as bank:
        artifact = bank.put(array, owned=True)
        assert np.shares_memory(bank.get(artifact.pointer, as_type=np.ndarray), array)


class Outage(MemoryStore):
    """Takes nothing."""

    async def put_many(self, *_: object, **__: object) -> bool:
        raise OSError("no room")


async def test_what_could_not_be_kept_passes_whole_up_to_its_bound() -> None:
    shown = Mirror(Bank(Outage()))
    small, large = np.zeros(5_000), np.zeros(50_000)

    assert await shown.offload(small) is small
    assert await shown.offload(large) == (
        "[400,128 bytes of binary output, not shown; they were not kept]"
    )


async def test_an_object_array_is_shown_as_it_is() -> None:
    array = np.array([object()] * 100)

    assert await Mirror(Bank(MemoryStore())).offload(array) is array
