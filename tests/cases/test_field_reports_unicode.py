"""Reports on characters: none is split, none breaks a later request, and offsets count them."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coatcheck import Bank, BlockingBank, Envelope, Limits, Mirror, encoded_size, mirror
from coatcheck.stores import MemoryStore
from coatcheck.tools import artifact_tools, retrieval_tools

Show = Callable[[Bank, object], Awaitable[Any]]
ReadWhole = Callable[[Bank, str], Awaitable[str]]

WRAPS: list[Callable[[str], object]] = [
    str,
    lambda text: {"k": text},
    lambda text: [{text: [text]}],
]
SURROGATE = "\ud83d"
ANY_TEXT = st.text() | st.text(st.sampled_from('\ud83d\ude00\0\x1b\r"\\😀a'), max_size=80)


def as_seen(shown: object) -> str:
    """Return what a framework puts into a request for what a mirrored tool answered."""
    return shown if isinstance(shown, str) else json.dumps(_wire(shown), ensure_ascii=False)


def _wire(shown: object) -> object:
    return shown.to_wire() if isinstance(shown, Envelope) else shown


def is_strict(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def test_br_011_a_preview_of_emoji_is_200_whole_ones(bank: Bank, show: Show) -> None:
    shown = await show(bank, "😀" * 30_000)

    wire = json.loads(str(shown))
    assert wire["preview"] == "😀" * 200 + " … (29,800 more characters)"
    assert wire["sizeBytes"] == 120_000
    assert is_strict(str(shown))
    assert "\ufffd" not in str(shown)


@pytest.mark.parametrize("char", ["é", "ж", "漢", "😀", "\U0010ffff"])
@pytest.mark.parametrize("shift", [0, 1, 2, 3])
async def test_br_011_a_preview_of_any_length_splits_no_character(char: str, shift: int) -> None:
    text = "x" * shift + char * 5_000
    bank = Bank(MemoryStore())

    for chars in (0, 1, 199, 200, 201, 1_000):
        artifact = await bank.put(text, preview_chars=chars, shown_chars=chars)

        assert artifact.preview == text[:chars]
        assert artifact.size_bytes == shift + 5_000 * len(char.encode())
        more = f" … ({len(text) - chars:,} more characters)"
        assert artifact.shown_preview == (text[:chars] + more if chars else "")


CLUSTERS = ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "🇫🇷", "e\u0301", "👍🏽", "\r\n", "각"]


@pytest.mark.parametrize("cluster", CLUSTERS)
async def test_br_011_a_preview_splits_no_character_as_a_reader_sees_it(cluster: str) -> None:
    artifact = await Bank(MemoryStore()).put(cluster * 20_000, shown_chars=200)

    head = artifact.shown_preview.partition(" … ")[0]
    assert head == cluster * (200 // len(cluster))
    left_out = 20_000 * len(cluster) - len(head)
    assert artifact.shown_preview == f"{head} … ({left_out:,} more characters)"


async def test_br_013_a_lone_surrogate_is_shown_as_one_replacement(bank: Bank, show: Show) -> None:
    shown = await show(bank, f"ok {SURROGATE} end")

    assert shown == "ok \ufffd end"
    assert len(shown) == 8
    assert shown.encode().decode() == shown


@pytest.mark.parametrize(
    "value",
    [
        {"out": f"ok {SURROGATE} end 😀"},
        [f"ok {SURROGATE} end 😀", 1, None],
        {f"ok {SURROGATE} end 😀": 1.5},
        {"a": [{"b": (f"ok {SURROGATE} end 😀", True)}]},
    ],
)
async def test_br_013_a_lone_surrogate_deep_in_a_small_value_is_shown_as_one_replacement(
    bank: Bank, show: Show, value: object
) -> None:
    before = repr(value)

    shown = await show(bank, value)

    seen = as_seen(shown)
    assert is_strict(seen)
    assert "ok \ufffd end 😀" in seen
    assert json.loads(json.dumps(value).replace("\\ud83d end", "\\ufffd end")) == json.loads(seen)
    assert repr(value) == before


@pytest.mark.parametrize("wrap", WRAPS)
async def test_br_013_lone_surrogates_in_a_large_reply_are_kept_exactly_and_shown_replaced(
    bank: Bank, show: Show, wrap: Callable[[str], object]
) -> None:
    value = wrap(f"ok {SURROGATE} end 😀 \udfff " * 5_000)

    shown = await show(bank, value)

    assert is_strict(str(shown))
    wire = json.loads(str(shown))
    assert "ok \ufffd end 😀 \ufffd ok" in wire["preview"]
    assert wire["sizeBytes"] == encoded_size(value)
    assert await bank.get(wire["pointer"]) == value
    (reader,) = retrieval_tools(bank)
    reply = await reader.call({"artifactId": wire["pointer"], "search": "END", "limit": 1})
    assert is_strict(reply)
    assert "ok \ufffd end 😀 \ufffd ok" in json.loads(reply)["matches"][0]["snippet"]


async def test_br_013_replaced_one_for_one_offsets_stay_true(
    bank: Bank, read_whole: ReadWhole
) -> None:
    text = f"ok {SURROGATE} end 😀\n" * 10
    artifact = await bank.put(text)
    _, get_artifact, list_artifacts = artifact_tools(bank)

    shown = text.replace(SURROGATE, "\ufffd")
    assert await read_whole(bank, artifact.pointer) == shown
    assert await get_artifact.call({"pointerOrName": artifact.pointer}) == shown
    assert is_strict(await list_artifacts.call({}))
    for offset in range(len(text)):
        page = await bank.read(artifact.pointer, offset, 3)
        assert page.content == text[offset : offset + 3]


@pytest.mark.parametrize("asked", [SURROGATE, f"art:{SURROGATE}", {"x": SURROGATE}, 7, None])
async def test_br_013_a_lone_surrogate_in_a_call_comes_back_in_no_failure(
    bank: Bank, asked: object
) -> None:
    for tool in (*retrieval_tools(bank), *artifact_tools(bank)):
        for name in tool.parameters["properties"]:
            assert is_strict(await tool.call({name: asked, "name": "n", "value": "v"}))
            assert is_strict(await tool.call(json.dumps({name: asked}, ensure_ascii=False)))
            assert is_strict(await tool.call(json.dumps({name: asked, f"{SURROGATE}": 1})))


@pytest.mark.parametrize(
    "content_type", [SURROGATE, f"text/plain; x={SURROGATE}", "", " ", "a/b\n", "\x1b[31m", "é/x"]
)
@pytest.mark.parametrize("length", [1, 200])
async def test_br_013_a_content_type_of_a_model_breaks_no_later_reply(
    bank: Bank, content_type: str, length: int
) -> None:
    store_artifact, _, list_artifacts = artifact_tools(bank)
    call = {"name": "n", "value": "v", "contentType": content_type * length}

    refused = json.loads(await store_artifact.call(call))
    accepted = json.loads(await store_artifact.call({**call, "contentType": "x/" + "y" * 198}))

    assert refused["error"] == "invalid-argument"
    assert "content type" in refused["message"]
    assert refused["hint"]
    listed = await list_artifacts.call({})
    assert is_strict(listed)
    assert [each["pointer"] for each in json.loads(listed)] == [accepted["pointer"]]


@settings(max_examples=150)
@given(
    value=st.recursive(
        ANY_TEXT | st.none() | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
        max_leaves=8,
    ),
    inline_bytes=st.sampled_from([0, 1, 250, 51_200]),
)
async def test_whatever_a_tool_returns_its_reply_is_strict_utf8_and_an_envelope_is_json(
    value: object, inline_bytes: int
) -> None:
    bank = Bank(MemoryStore())

    def tool() -> object:
        return value

    async def waiting() -> object:
        return value

    for shown in (
        mirror(tool, bank, inline_bytes=inline_bytes)(),
        await mirror(waiting, bank, inline_bytes=inline_bytes)(),
    ):
        assert is_strict(as_seen(shown))
        if isinstance(shown, Envelope):
            assert json.loads(str(shown)) == shown.to_wire()
            assert await bank.get(shown.pointer) == value


async def test_br_014_a_pair_of_json_escapes_reaches_the_tool_as_one_character(
    bank: Bank,
) -> None:
    arguments = r'{"s":"\ud83c\udf78","deep":[{"\ud83c\udf78":"a\ud83c\udf78b"}]}'

    resolved = await Mirror(bank).resolve(arguments)

    assert resolved["s"] == "\U0001f378"
    assert len(str(resolved["s"])) == 1
    assert resolved["deep"] == [{"\U0001f378": "a\U0001f378b"}]


@pytest.mark.parametrize(
    ("escapes", "chars"),
    [
        (r"\ud83c\udf78", ["\U0001f378"]),
        (r"\udf78\ud83c", ["\udf78", "\ud83c"]),
        (r"\ud83c", ["\ud83c"]),
        (r"\ud83c\ud83c\udf78", ["\ud83c", "\U0001f378"]),
        (r"\ud83c \udf78", ["\ud83c", " ", "\udf78"]),
    ],
)
async def test_br_014_only_a_pair_is_one_character(
    bank: Bank, escapes: str, chars: list[str]
) -> None:
    def spell(s: str) -> list[int]:
        return [ord(char) for char in s]

    resolved = await Mirror(bank).resolve(f'{{"s":"{escapes}"}}')

    assert resolved == {"s": "".join(chars)}
    assert mirror(spell, bank)(**resolved) == [ord(char) for char in chars]


async def test_br_014_our_own_tools_read_the_pair_as_one_character_too(bank: Bank) -> None:
    store_artifact, get_artifact, _ = artifact_tools(bank)
    (reader,) = retrieval_tools(bank)

    await store_artifact.call(r'{"name":"drinks","value":"ab \ud83c\udf78 cd"}')

    assert await get_artifact.call('{"pointerOrName":"drinks"}') == "ab \U0001f378 cd"
    found = json.loads(
        await reader.call(r'{"artifactId":"drinks","search":"\ud83c\udf78","limit":1}')
    )
    assert found["matches"][0]["offset"] == 3


async def test_br_015_search_gives_the_offset_that_read_takes(bank: Bank) -> None:
    artifact = await bank.put("żółć needle")

    found = await bank.search(artifact.pointer, "needle")

    assert [match.offset for match in found.matches] == [5]
    assert (await bank.read(artifact.pointer, offset=5, limit=6)).content == "needle"


@pytest.mark.parametrize("char", ["x", "é", "漢", "😀", "e\u0301", "\ud800"])
@pytest.mark.parametrize("count", [1, 65_535, 65_536, 70_001])
async def test_br_015_offsets_agree_behind_characters_of_every_width(
    bank: Bank, char: str, count: int
) -> None:
    artifact = await bank.put(char * count + "Needle" + char * 10)
    (reader,) = retrieval_tools(bank)

    call = {"artifactId": artifact.pointer, "search": "needle"}
    offset = json.loads(await reader.call(call))["matches"][0]["offset"]

    assert offset == count * len(char)
    window = {"artifactId": artifact.pointer, "offset": offset, "limit": 6}
    assert json.loads(await reader.call(window))["content"] == "Needle"


async def test_br_017_nul_is_a_character_like_any_other(
    bank: Bank, show: Show, read_whole: ReadWhole
) -> None:
    text = "W\0s\0l\0" * 20_000

    shown = await show(bank, text)

    page = await bank.read(shown.pointer, 0, 6)
    assert page.content == "W\0s\0l\0"
    assert page.total == 120_000
    assert (await bank.search(shown.pointer, "l")).matches[0].offset == 4
    assert (await bank.search(shown.pointer, "\0")).total_matches == 60_000
    assert await read_whole(bank, shown.pointer) == text
    assert json.loads(str(shown))["sizeBytes"] == 120_000


@pytest.mark.parametrize("wrap", WRAPS)
async def test_br_017_nul_inside_values_comes_back(
    bank: Bank, show: Show, wrap: Callable[[str], object]
) -> None:
    value = wrap("W\0s\0l\0" * 20_000)

    assert await bank.get((await show(bank, value)).pointer) == value
    assert await show(bank, wrap("a\0b")) == wrap("a\0b")


def test_br_017_nul_comes_back_without_an_event_loop() -> None:
    with BlockingBank("memory:", limits=Limits(preview_chars=5)) as bank:
        artifact = bank.put("W\0s\0l\0" * 20_000)

        assert bank.read(artifact.pointer, 0, 6).content == "W\0s\0l\0"
        assert bank.search(artifact.pointer, "L\0w").matches[0].offset == 4
        assert bank.get(artifact.pointer) == "W\0s\0l\0" * 20_000
