"""Selectors in a bank: what they pick, and that it is read like an artifact of its own."""

import json
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank, Limits, Pointer, UnknownPointerError
from coatcheck.bank._keys import ScopeKeys
from coatcheck.errors import (
    BinaryPayloadError,
    CoatcheckError,
    DamagedPayloadError,
    ExpiredPointerError,
    InvalidArgumentError,
    InvalidPointerError,
    InvalidQueryError,
    NothingSelectedError,
)
from coatcheck.stores import MemoryStore, Store
from coatcheck.testing import ManualClock

pd: Any = import_module("pandas")

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ROWS: list[Any] = [{"id": number, "tags": [number, "żółć"]} for number in range(2_500)]
LOG = "".join(f"{number} żółć\n" for number in range(30_000))
SMALL_CACHE = Limits(cache_bytes=0)


@pytest.fixture(params=["kept", "not kept"])
def bank(request: pytest.FixtureRequest) -> Bank:
    """Return a bank that remembers parsed payloads, and one that has no room for them."""
    return Bank(MemoryStore(), limits=Limits() if request.param == "kept" else SMALL_CACHE)


async def put(bank: Bank, value: object, content_type: str | None = None) -> str:
    return (await bank.put(value, content_type=content_type)).pointer


async def joined(bank: Bank, pointer: str, unit: str, limit: int) -> Any:
    parts: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = await bank.read(pointer, offset, limit, unit)
        parts.append(page.content)
        offset = page.next_offset
        if offset is None and page.next_offset_chars is not None:
            rest = await bank.read(pointer, page.next_offset_chars, 200_000)
            parts.append(rest.content)
    return b"".join(parts) if unit == "bytes" else "".join(parts)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("/0/id", 0),
        ("/2499/tags/1", "żółć"),
        ("/7", ROWS[7]),
        ("$", ROWS),
        ("$[7].id", 7),
        ("$[-1].tags", ROWS[-1]["tags"]),
        ("$[*].id", list(range(2_500))),
        ("$[5:7]", ROWS[5:7]),
        ("$[?@.id < 2].id", [0, 1]),
        ("$..id", list(range(2_500))),
        ("row=1", ROWS[:1]),
        ("row=1000-1030", ROWS[999:1_030]),
        ("row=2500-99999", ROWS[2_499:]),
    ],
)
async def test_a_selector_picks_a_value_of_rows(
    bank: Bank, selector: str, expected: object
) -> None:
    for value, content_type in (
        (ROWS, None),
        (json.dumps(ROWS, indent=1), None),
        ("".join(f"{json.dumps(row)}\n" for row in ROWS), "application/x-ndjson"),
        (json.dumps(ROWS).encode(), "application/json"),
    ):
        pointer = await put(bank, value, content_type)

        found = await bank.get(f"{pointer}#{selector}")

        assert found == expected
        assert type(found) is type(expected)
        assert await bank.get(Pointer.parse(f"{pointer}#{selector}")) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("L1", LOG[:11]),
        ("L2-L3", "1 żółć\n2 żółć\n"),
        ("L30000-L40000", "29999 żółć\n"),
        ("line=0,1", "0 żółć\n"),
        ("line=29999,", "29999 żółć\n"),
        ("line=,2", "0 żółć\n1 żółć\n"),
        ("char=2,6", "żółć"),
        ("char=,3", "0 ż"),
        (f"char={len(LOG) - 3},", "łć\n"),
    ],
)
async def test_a_selector_picks_a_window_of_text(bank: Bank, selector: str, expected: str) -> None:
    expected = "0 żółć\n" if selector == "L1" else expected
    for value, content_type in ((LOG, None), (LOG.encode(), "text/plain")):
        pointer = f"{await put(bank, value, content_type)}#{selector}"

        assert await bank.get(pointer) == expected
        assert await bank.payload(pointer) == expected.encode()
        assert (await bank.read(pointer)).content == expected


async def test_windows_of_text_pick_from_json_and_tables_as_they_are_written(bank: Bank) -> None:
    rows = await put(bank, [{"id": 1}, {"id": 2}])
    table = await put(bank, "id,name\n1,x\n2,y\n3,z\n")

    assert await bank.get(f"{rows}#char=0,8") == '[{"id":1'
    assert await bank.get(f"{table}#L1-L2") == "id,name\n1,x\n"


async def test_fields_of_a_table_are_text_and_its_header_is_no_row(bank: Bank) -> None:
    pointer = await put(bank, "id,name\r\n01,x\r\n02,\r\n03\r\n", "text/csv")

    assert await bank.get(f"{pointer}#row=1") == [{"id": "01", "name": "x"}]
    assert await bank.get(f"{pointer}#/1") == {"id": "02", "name": ""}
    assert await bank.get(f"{pointer}#$[*].name") == ["x", "", None]


async def test_arrays_and_frames_are_picked_from_as_rows(bank: Bank) -> None:
    array = np.arange(40_000.0).reshape(20_000, 2)
    frame = pd.DataFrame({"id": range(20_000), "name": [f"n{at}" for at in range(20_000)]})
    floats, table = await put(bank, array), await put(bank, frame)

    assert await bank.get(f"{floats}#row=2-3") == array[1:3].tolist()
    assert await bank.get(f"{floats}#/19999/1") == 39_999.0
    assert await bank.get(f"{floats}#$[*][0]") == array[:, 0].tolist()
    assert await bank.get(f"{table}#row=20000") == [{"id": 19_999, "name": "n19999"}]
    assert await bank.get(f"{table}#$[*].id") == list(range(20_000))
    assert (await bank.read(f"{table}#/3")).content == '{"id":3,"name":"n3"}'
    assert (await bank.search(f"{table}#row=7", "N6")).total_matches == 1


async def test_a_list_without_an_index_of_rows_has_rows_all_the_same(bank: Bank) -> None:
    pointer = await put(bank, '[{"id": 1}, {"id": 2}]', "text/plain")

    assert await bank.get(f"{pointer}#row=2") == [{"id": 2}]
    with pytest.raises(NothingSelectedError, match="no such rows") as refused:
        await bank.get(f"{pointer}#row=3")
    assert refused.value.hint == "It is a list of 2 with the keys 'id'."


async def test_a_payload_without_a_preview_is_known_by_its_beginning(bank: Bank) -> None:
    text = (await bank.put('{"a": [1]}', content_type="text/plain", preview_chars=0)).pointer

    assert await bank.get(f"{text}#/a/0") == 1


@pytest.mark.parametrize(
    ("selector", "as_type", "expected"),
    [
        ("$[0:2].id", str, "[0,1]"),
        ("$[0:2].id", bytes, b"[0,1]"),
        ("$[0:2].id", list[int], [0, 1]),
        ("$[0:2].id", tuple[str, ...], InvalidArgumentError),
        ("/1/id", int, 1),
        ("/1/id", str, "1"),
        ("/1/tags/1", str, "żółć"),
        ("/1/tags/1", list[int], InvalidArgumentError),
        ("row=2", list[dict[str, object]], [ROWS[1]]),
        ("char=0,1", str, "["),
    ],
)
async def test_a_selection_becomes_a_declared_type_as_a_whole_artifact_does(
    bank: Bank, selector: str, as_type: Any, expected: Any
) -> None:
    pointer = f"{await put(bank, ROWS)}#{selector}"

    if isinstance(expected, type):
        with pytest.raises(expected):
            await bank.get(pointer, as_type)
    else:
        assert await bank.get(pointer, as_type) == expected


SELECTED: list[tuple[str, Callable[[Any], Any]]] = [
    ("/3", lambda rows: rows[3]),
    ("$[*].name", lambda rows: [row["name"] for row in rows]),
    ("$[1:3]", lambda rows: rows[1:3]),
    ("row=2-4", lambda rows: rows[1:4]),
    ("row=4", lambda rows: rows[3:4]),
    ("/0/name", lambda rows: rows[0]["name"]),
]
NAMES = st.text(alphabet='aé€🚀\ud800\n\\"', max_size=30)


@given(
    st.lists(NAMES, min_size=4, max_size=8),
    st.sampled_from(SELECTED),
    st.sampled_from(["chars", "lines", "bytes"]),
    st.integers(1, 40),
    st.booleans(),
)
async def test_pages_of_a_selection_joined_are_its_payload_and_its_value_that_of_python(
    names: list[str],
    selected: tuple[str, Callable[[Any], Any]],
    unit: str,
    limit: int,
    is_kept: bool,
) -> None:
    bank = Bank(MemoryStore(), limits=Limits() if is_kept else SMALL_CACHE)
    rows = [{"id": number, "name": name} for number, name in enumerate(names)]
    selector, select = selected
    pointer = f"{await put(bank, rows)}#{selector}"

    value, payload = await bank.get(pointer), await bank.payload(pointer)

    assert value == select(rows)
    alone = await put(bank, select(rows))
    assert payload == await bank.payload(alone)
    content = await joined(bank, pointer, unit, limit)
    assert content == (payload if unit == "bytes" else payload.decode("utf-8", "surrogatepass"))
    assert await bank.read(pointer, 3, limit, unit) == await bank.read(alone, 3, limit, unit)


@given(
    st.text(alphabet="abé€🚀\n", min_size=1, max_size=300),
    st.sampled_from(["char={},{}", "line={},{}"]),
    st.integers(0, 250),
    st.integers(1, 250),
    st.sampled_from(["chars", "lines", "bytes"]),
)
async def test_pages_of_a_window_joined_are_the_window(
    text: str, form: str, start: int, length: int, unit: str
) -> None:
    bank = Bank(MemoryStore())
    pointer = f"{await put(bank, text)}#{form.format(start, start + length)}"
    lines = text.split("\n")
    parts = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    expected: str = "".join((parts if form.startswith("line") else text)[start : start + length])

    if not expected:
        with pytest.raises(NothingSelectedError):
            await bank.read(pointer)
        return
    alone = await put(bank, expected)
    assert await bank.get(pointer) == expected
    content = await joined(bank, pointer, unit, 7)
    assert content == (expected.encode() if unit == "bytes" else expected)
    assert await bank.read(pointer, 2, 9, unit) == await bank.read(alone, 2, 9, unit)


@given(
    st.text(alphabet="aAßsS é\n", min_size=1, max_size=200),
    st.integers(0, 60),
    st.integers(1, 200),
    st.sampled_from(["a", "ss", "s", "a\n", "É"]),
)
async def test_hits_within_a_window_are_those_of_the_window_alone_and_read_back(
    text: str, start: int, length: int, needle: str
) -> None:
    bank = Bank(MemoryStore())
    expected = text[start : start + length]
    if not expected:
        return
    pointer = f"{await put(bank, text)}#char={start},{start + length}"
    alone = await put(bank, expected)

    found = await bank.search(pointer, needle)

    assert found == await bank.search(alone, needle)
    for match in found.matches:
        hit = expected[match.offset :]
        assert (await bank.read(pointer, match.offset)).content == hit
        assert hit.casefold().startswith(needle.casefold()[:1]) or needle == "s"
        assert expected[: match.offset].count("\n") + 1 == match.line_number
        assert expected[match.snippet_offset :].startswith(match.snippet)


@given(
    st.text(alphabet="ab1 é\n", min_size=1, max_size=200),
    st.integers(0, 60),
    st.integers(1, 200),
    st.sampled_from([r"\bab*", r"\w+\b", r"^a", r"b$", "[^a]1", "é|1a"]),
)
async def test_hits_of_a_pattern_see_nothing_around_a_window(
    text: str, start: int, length: int, pattern: str
) -> None:
    bank = Bank(MemoryStore())
    expected = text[start : start + length]
    if not expected:
        return
    pointer = f"{await put(bank, text)}#char={start},{start + length}"

    found = await bank.search(pointer, pattern, regex=True)

    assert found == await bank.search(await put(bank, expected), pattern, regex=True)


async def test_hits_within_a_value_read_back_too(bank: Bank) -> None:
    pointer = f"{await put(bank, ROWS)}#$[*].tags"
    text = json.dumps([row["tags"] for row in ROWS], ensure_ascii=False, separators=(",", ":"))

    found = await bank.search(pointer, "ŻÓŁĆ", offset=5_000, limit=3)

    assert found.total_matches == text.count("żółć", 5_000)
    for match in found.matches:
        assert (await bank.read(pointer, match.offset, 4)).content == "żółć"
    assert (await bank.read(pointer, unit="rows", offset=3, limit=1)).content == '[[3,"żółć"]]'


async def test_a_large_window_is_searched_piece_by_piece(bank: Bank) -> None:
    text = "".join(
        f"{number} żółć{' needle' * (number % 40_000 == 7)}\n" for number in range(90_000)
    )
    pointer = await put(bank, text)
    start = text.index("needle") + 1

    for _ in range(2):
        found = await bank.search(f"{pointer}#char={start},", "NEEDLE")

        assert found.total_matches == 2
        assert [match.offset for match in found.matches] == [
            at - start
            for at in range(start, len(text))
            if text[at] == "n" and text.startswith("needle", at)
        ]
        assert [match.line_number for match in found.matches] == [40_001, 80_001]


@pytest.mark.parametrize(
    ("value", "selector", "reason", "hint"),
    [
        (ROWS, "/x", "is no index", "counted from 0"),
        (ROWS, "/2500/id", "has no item '2500'", "0 to 2,499"),
        (ROWS, "/7/nope", "an object without 'nope'", "'id', 'tags'"),
        (ROWS, "$[*].nope", "no part of it", "a list of 2,500 with the keys 'id', 'tags'"),
        (ROWS, "$.nope", "no part of it", "a list of 2,500 with the keys 'id', 'tags'"),
        (ROWS, "row=2501", "no such rows", "2,500 rows"),
        ({"total": 1}, "row=1", "no such rows", "an object with the keys 'total'"),
        ({"total": 1}, "/items", "an object without 'items'", "'total'"),
        (LOG, "L30001", "ends before", "30,000 lines"),
        (LOG, f"char={len(LOG)},", "ends before", f"{len(LOG):,} characters"),
        (LOG, "/0", "no JSON and no table", "30,000 lines"),
        (LOG, "$[*].id", "no JSON and no table", "30,000 lines"),
        (LOG, "row=1", "no JSON and no table", "30,000 lines"),
        ("a,b\n1,2\n1,2\n1,2\n", "/0/c", "an object without 'c'", "'a', 'b'"),
        ("a,b\n1,2\n1,2\n1,2\n", "row=4", "no such rows", "3 rows with the columns 'a', 'b'"),
        (b"\xff\xfe", "L1", "no text", "2 bytes of application/octet-stream"),
        (b"\xff\xfe", "/0", "no JSON and no table", "2 bytes of application/octet-stream"),
        (np.zeros((4, 2)), "char=0,1", "no text", "4 rows"),
        ("[2026-05-01] started", "/0", "not JSON", "1 line, 20 characters"),
        ("", "char=0,", "ends before", "0 lines, 0 characters"),
    ],
)
async def test_nothing_selected_says_what_the_artifact_has(
    bank: Bank, value: object, selector: str, reason: str, hint: str
) -> None:
    pointer = f"{await put(bank, value)}#{selector}"
    calls: list[Callable[[str], Awaitable[object]]] = [
        bank.get,
        bank.payload,
        bank.read,
        lambda text: bank.read(text, 0, 1, "bytes"),
        lambda text: bank.search(text, "x"),
    ]

    for call in calls:
        with pytest.raises(NothingSelectedError) as refused:
            await call(pointer)

        assert refused.value.pointer == pointer
        assert reason in str(refused.value)
        assert hint in refused.value.hint
        assert len(str(refused.value)) + len(refused.value.hint) < 600


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ("", InvalidPointerError),
        ("items", InvalidPointerError),
        ("L0x", InvalidPointerError),
        ("/" + "x" * 2_000, InvalidPointerError),
        ("/" + "x" * 1_000, InvalidArgumentError),
        ("L0", InvalidArgumentError),
        ("line=5,5", InvalidArgumentError),
        ("char=7", InvalidArgumentError),
        ("row=3-2", InvalidArgumentError),
        ("/a~2", InvalidArgumentError),
        ("$[", InvalidQueryError),
    ],
)
async def test_a_wrong_selector_is_refused_by_every_call(
    bank: Bank, selector: str, error: type[CoatcheckError]
) -> None:
    pointer = f"{await put(bank, {'a': 1})}#{selector}"
    calls: list[Callable[[str], Awaitable[object]]] = [
        bank.get,
        bank.payload,
        bank.read,
        lambda text: bank.search(text, "x"),
    ]

    for call in calls:
        with pytest.raises(error) as refused:
            await call(pointer)
        assert refused.value.hint


async def test_a_selector_is_no_part_of_the_artifact_that_is_found(bank: Bank) -> None:
    artifact = await bank.put({"a": 1}, name="it")

    assert await bank.find(f"{artifact.pointer}#/a") == artifact
    assert await bank.find(f"{artifact.pointer}#/none") == artifact
    assert await bank.find(f"{artifact.pointer}#what") is None
    assert await bank.find(f"{UNKNOWN}#/a") is None


@pytest.mark.parametrize("behind", ["own", "unknown"])
async def test_a_part_cannot_be_deleted_whatever_stands_behind_it(bank: Bank, behind: str) -> None:
    pointer = await put(bank, {"a": 1}) if behind == "own" else UNKNOWN

    with pytest.raises(InvalidArgumentError, match="part") as refused:
        await bank.delete(f"{pointer}#/a")
    with pytest.raises(InvalidPointerError):
        await bank.delete(f"{pointer}#nothing")

    assert "whole" in refused.value.hint
    assert await bank.delete(pointer) is (behind == "own")


@pytest.mark.parametrize("name", [f"{UNKNOWN}#x", f"{UNKNOWN}#/a", f"{UNKNOWN}#"])
async def test_no_name_looks_like_a_pointer_with_something_behind_it(bank: Bank, name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        await bank.put("x", name=name)


async def test_names_and_bare_ids_are_never_split(bank: Bank) -> None:
    artifact = await bank.put({"a": 1}, name="issue #/a")

    assert await bank.get("issue #/a") == {"a": 1}
    with pytest.raises(UnknownPointerError):
        await bank.get(f"{artifact.id}#/a")


async def test_whoever_changes_a_selection_changes_nothing_but_that(bank: Bank) -> None:
    pointer = await put(bank, {"rows": [{"id": 1, "tags": ["a"]}], "n": 1})

    for selector in ("/rows", "/rows/0/tags", "$", "$.rows", "$.rows[*]", "$..tags"):
        found: Any = await bank.get(f"{pointer}#{selector}")
        for part in found:
            if isinstance(part, dict | list):
                part.clear()
        found.clear()
    rows: Any = await bank.get(f"{await put(bank, ROWS[:3])}#row=2")
    rows[0].clear()

    assert await bank.get(f"{pointer}#$") == {"rows": [{"id": 1, "tags": ["a"]}], "n": 1}


class CountingStore(MemoryStore):
    """Counts the bytes that leave it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, int]] = []

    async def get(self, key: str) -> bytes | None:
        payload = await super().get(key)
        self.sent.append((key, len(payload or b"")))
        return payload

    async def get_range(self, key: str, start_byte: int, stop_byte: int) -> bytes | None:
        payload = await super().get(key)
        if payload is not None:
            payload = payload[start_byte:stop_byte]
            self.sent.append((key, len(payload)))
        return payload

    def payload_bytes(self) -> int:
        return sum(size for key, size in self.sent if "/payloads/" in key)


async def test_a_window_costs_what_it_holds_however_large_the_rest_is() -> None:
    store = CountingStore()
    bank = Bank(store)
    pointer = await put(bank, LOG * 20, "text/plain")
    calls: list[Callable[[str], Awaitable[object]]] = [
        bank.get,
        bank.payload,
        bank.read,
        lambda text: bank.read(text, 3, 2, "lines"),
        lambda text: bank.search(text, "żółć"),
    ]

    for call in calls:
        for selector in ("L300000-L300010", "char=3000000,3000100", "line=599995,"):
            store.sent.clear()
            await call(f"{pointer}#{selector}")
            assert 0 < store.payload_bytes() < 500_000
    store.sent.clear()
    page = await bank.read(f"{pointer}#line=10,", 2_000_000, 50)
    assert len(page.content) == 50
    assert page.total == len(LOG) * 20 - len("".join(LOG.splitlines(keepends=True)[:10]))
    assert store.payload_bytes() < 500_000


async def test_rows_and_paths_that_name_one_cost_a_block_of_a_large_table() -> None:
    store = CountingStore()
    bank = Bank(store, limits=SMALL_CACHE)
    rows = [{"id": number, "name": f"n{number}"} for number in range(50_000)]
    pointer = await put(bank, rows)

    for selector in ("row=30000-30002", "/30000/name", "$[-7].id", "$[30000]"):
        store.sent.clear()
        await bank.get(f"{pointer}#{selector}")
        assert 0 < store.payload_bytes() < 80_000
    assert await bank.get(f"{pointer}#/30000/name") == "n30000"


async def test_a_small_payload_is_fetched_once_for_many_selectors() -> None:
    store = CountingStore()
    bank = Bank(store)
    pointer = await put(bank, ROWS)

    for selector in ("/1/id", "/2/id", "$[*].id", "/0"):
        await bank.get(f"{pointer}#{selector}")

    assert sum("/payloads/" in key for key, _ in store.sent) == 1


async def test_pages_of_a_selection_are_made_once() -> None:
    store = CountingStore()
    bank = Bank(store)
    rows = [{"id": number, "pad": "x" * 8_000} for number in range(2_500)]
    artifact = await bank.put(rows)
    pointer, size_bytes = artifact.pointer, artifact.size_bytes
    whole = await joined(bank, f"{pointer}#$[*].id", "chars", 1_000)

    assert json.loads(whole) == list(range(2_500))
    assert store.payload_bytes() < 1.1 * size_bytes


async def test_a_tree_over_its_share_of_the_cache_is_not_kept() -> None:
    value = {"rows": [{"id": number} for number in range(2_000)]}
    stores = [CountingStore(), CountingStore()]

    for store, cache_bytes in zip(stores, (10_000, 10_000_000), strict=True):
        bank = Bank(store, limits=Limits(cache_bytes=cache_bytes))
        pointer = await put(bank, value)
        for _ in range(3):
            assert await bank.get(f"{pointer}#/rows/7/id") == 7

    fetched = [sum("/payloads/" in key for key, _ in store.sent) for store in stores]
    assert fetched == [3, 1]


async def test_several_pointers_of_one_call_parse_a_payload_once() -> None:
    store = CountingStore()
    bank = Bank(store, limits=SMALL_CACHE)
    pointer = await put(bank, {"rows": ROWS, "n": 1})
    asked = [f"{pointer}#/rows/{number}" for number in range(50)]

    found = [
        value async for value, _ in bank.get_each([*asked, asked[0], pointer, f"{pointer}#/n"])
    ]

    assert found[:50] == ROWS[:50]
    assert found[50:] == [ROWS[0], {"rows": ROWS, "n": 1}, 1]
    assert found[50] is not found[0]
    assert sum("/payloads/" in key for key, _ in store.sent) == 2
    found[0].clear()  # type: ignore[attr-defined]
    assert found[50] == ROWS[0]


async def test_text_that_is_asked_for_twice_is_fetched_once() -> None:
    store = CountingStore()
    bank = Bank(store, limits=SMALL_CACHE)
    pointer = f"{await put(bank, LOG)}#L7"

    assert [value async for value, _ in bank.get_each([pointer] * 5)] == ["6 żółć\n"] * 5
    assert len(store.sent) < 8


async def test_the_first_wrong_pointer_of_several_ends_the_call(bank: Bank) -> None:
    pointer = await put(bank, [1])
    found: list[object] = []

    async def take(*pointers: str) -> None:
        async for value, _ in bank.get_each(pointers):
            found.append(value)

    with pytest.raises(NothingSelectedError):
        await take(f"{pointer}#/0", f"{pointer}#/1", f"{UNKNOWN}#/0")
    with pytest.raises(InvalidPointerError):
        await take(pointer, f"{pointer}#what")

    assert found == [1]


SELECTORS = ["/0/id", "$[*].id", "$[0]", "row=1", "L1", "char=0,2"]


@pytest.mark.parametrize("selector", SELECTORS)
async def test_what_was_deleted_elsewhere_is_unknown_with_a_selector_too(selector: str) -> None:
    store = MemoryStore()
    bank = Bank(store)
    pointer = await put(bank, ROWS[:5])
    selected = f"{pointer}#{selector}"
    await bank.get(selected)
    await bank.read(selected)
    await bank.search(selected, "1")

    await Bank(store).delete(pointer)

    for call in (bank.get(selected), bank.read(selected), bank.search(selected, "1")):
        with pytest.raises(UnknownPointerError):
            await call


class VanishingStore(MemoryStore):
    """Loses a payload, with or without its record, at the moment that it is asked for."""

    def __init__(self, *, with_record: bool) -> None:
        super().__init__()
        self.is_armed = False
        self._with_record = with_record

    async def get(self, key: str) -> bytes | None:
        if self.is_armed and "/payloads/" in key:
            await self.delete(key)
            if self._with_record:
                for record in [each async for each in self.keys("s/default/records/")]:
                    await self.delete(record)
        return await super().get(key)


@pytest.mark.parametrize("limits", [Limits(), SMALL_CACHE])
@pytest.mark.parametrize("with_record", [True, False])
@pytest.mark.parametrize("selector", SELECTORS)
async def test_what_vanishes_while_it_is_read_is_unknown_or_else_damaged(
    limits: Limits, selector: str, with_record: bool
) -> None:
    store = VanishingStore(with_record=with_record)
    calls: list[Callable[[Bank, str], Awaitable[object]]] = [
        Bank.get,
        Bank.payload,
        Bank.read,
        lambda bank, text: bank.search(text, "1"),
    ]
    for call in calls:
        bank = Bank(store, limits=limits)
        store.is_armed = False
        pointer = (await bank.put(ROWS[:5], preview_chars=0)).pointer
        store.is_armed = True

        with pytest.raises(UnknownPointerError if with_record else DamagedPayloadError):
            await call(bank, f"{pointer}#{selector}")


@pytest.mark.parametrize("selector", ["/a", "$[*]"])
async def test_a_payload_that_vanishes_before_its_beginning_was_seen_is_unknown(
    selector: str,
) -> None:
    store = VanishingStore(with_record=True)
    bank = Bank(store)
    pointer = (await bank.put('{"a": 1}', content_type="text/plain", preview_chars=0)).pointer
    store.is_armed = True

    with pytest.raises(UnknownPointerError):
        await bank.get(f"{pointer}#{selector}")


async def test_a_tree_that_turns_out_larger_than_its_payload_tells_is_not_kept() -> None:
    store = CountingStore()
    bank = Bank(store, limits=Limits(cache_bytes=30_000))
    lists: list[list[object]] = [[] for _ in range(1_000)]
    pointer = await put(bank, {"lists": lists})

    for _ in range(3):
        assert await bank.get(f"{pointer}#/lists/7") == []

    assert sum("/payloads/" in key for key, _ in store.sent) == 3


async def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    values = (np.zeros((4, 2)), pd.DataFrame({"id": [1]}))
    pointers = [await put(Bank(store), value) for value in values]
    for name in ("numpy", "pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)

    for pointer, library in zip(pointers, ("numpy", "pyarrow"), strict=True):
        for selector in ("/0", "$[*]", "row=1"):
            with pytest.raises(InvalidArgumentError, match=library):
                await Bank(store).get(f"{pointer}#{selector}")


@pytest.mark.parametrize("selector", SELECTORS)
async def test_what_has_expired_says_so_with_a_selector_too(selector: str) -> None:
    clock = ManualClock()
    bank = Bank(MemoryStore(), clock=clock)
    pointer = (await bank.put(ROWS[:5], ttl_seconds=60)).pointer
    selected = f"{pointer}#{selector}"
    await bank.read(selected)
    clock.advance(61)

    for call in (bank.get(selected), bank.read(selected), bank.search(selected, "1")):
        with pytest.raises(ExpiredPointerError):
            await call


@pytest.mark.parametrize("limits", [Limits(), SMALL_CACHE])
@pytest.mark.parametrize("selector", ["/1/id", "$[*].id", "$..id", "row=1-2", "row=2000"])
async def test_a_damaged_payload_is_told_and_not_picked_from(limits: Limits, selector: str) -> None:
    store = MemoryStore()
    bank = Bank(store, limits=limits)
    artifact = await bank.put(ROWS)
    (key,) = [key async for key in store.keys(ScopeKeys.of("default").payload(""))]
    payload = await store.get(key)
    assert payload is not None

    for damaged in (payload[:50], payload.replace(b":", b" ")):
        await store.put(key, damaged)
        with pytest.raises(DamagedPayloadError):
            await bank.get(f"{artifact.pointer}#{selector}")


async def test_a_value_altered_in_place_is_found_by_the_digest(store: Store) -> None:
    for limits in (Limits(), SMALL_CACHE):
        bank = Bank(store, limits=limits, scope=f"{limits.cache_bytes}")
        artifact = await bank.put(ROWS)
        folder = ScopeKeys.of(bank.scope).payload("")
        (key,) = [key async for key in store.keys(folder)]
        payload = await store.get(key)
        assert payload is not None
        await store.put(key, payload.replace(b'"id":7,', b'"id":8,'))

        for selector in ("$[*].id", "$..id"):
            with pytest.raises(DamagedPayloadError):
                await bank.get(f"{artifact.pointer}#{selector}")


async def test_a_window_of_bytes_that_are_no_text_any_more_is_damage() -> None:
    store = MemoryStore()
    bank = Bank(store)
    artifact = await bank.put("é" * 50)
    (key,) = [key async for key in store.keys(ScopeKeys.of("default").payload(""))]
    await store.put(key, b"\xff" * 100)

    for call in (bank.get, bank.read):
        with pytest.raises(DamagedPayloadError):
            await call(f"{artifact.pointer}#char=1,9")


async def test_a_selected_value_that_is_bytes_is_binary(bank: Bank) -> None:
    frame = pd.DataFrame({"raw": [b"\xff\xfe", b"x"]})
    pointer = f"{await put(bank, frame)}#/0/raw"

    assert await bank.get(pointer) == b"\xff\xfe"
    assert await bank.payload(pointer) == b"\xff\xfe"
    assert (await bank.read(pointer, unit="bytes")).content == b"\xff\xfe"
    with pytest.raises(BinaryPayloadError) as refused:
        await bank.read(pointer)
    assert refused.value.pointer == pointer


async def test_selections_work_on_any_store_and_are_inherited(store: Store) -> None:
    bank = Bank(store, scope="above")
    pointer = await put(bank, ROWS)
    below = bank.scoped("below", inherit=True)

    assert await below.get(f"{pointer}#$[*].id") == list(range(2_500))
    assert (await below.read(f"{pointer}#/1")).content == '{"id":1,"tags":[1,"żółć"]}'
    with pytest.raises(UnknownPointerError):
        await bank.scoped("beside").get(f"{pointer}#/0")
