"""Results as a model sees them, block by block."""

import base64
import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank, Limits, Mirror
from coatcheck.apps.proxy._blocks import Rule
from coatcheck.apps.proxy._results import META_ARTIFACTS, shown_result, without_forged
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore

LIMIT = 4_000
LARGE = "a line of text\n" * 400
NAMES = [f"name {number}" for number in range(300)]
ROWS = [{"id": number, "name": f"name {number}"} for number in range(300)]
IMAGE = {"type": "image", "data": base64.b64encode(bytes(9_000)).decode(), "mimeType": "image/png"}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(6_000)


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


def rule(bank: Bank, **facts: Any) -> Rule:
    known: dict[str, Any] = {
        "mirror": Mirror(bank, Limits(inline_bytes=LIMIT)),
        "tool": "read",
        "limit_bytes": LIMIT,
        "image_bytes": None,
    }
    return Rule(**(known | facts))


async def show(bank: Bank, result: dict[str, Any], **facts: Any) -> dict[str, Any]:
    before = copy.deepcopy(result)
    shown, _ = await shown_result(result, rule(bank, **facts))
    assert result == before
    return shown


def text(given: str, **facts: object) -> dict[str, Any]:
    return {"type": "text", "text": given, **facts}


def envelope(block: Any) -> dict[str, Any]:
    assert block["type"] == "text"
    wire: dict[str, Any] = json.loads(block["text"])
    assert [*wire][:4] == ["pointer", "preview", "sizeBytes", "note"]
    return wire


async def count(bank: Bank) -> int:
    return len([artifact async for artifact in bank.list()])


async def test_a_large_text_is_replaced_where_it_stood_and_small_ones_stay(bank: Bank) -> None:
    first, last = text("first"), text("last", _meta={"a": 1})
    large = text(LARGE, annotations={"priority": 1}, _meta={"theirs": 2})

    shown = await show(bank, {"content": [first, large, IMAGE, last], "isError": False})

    content = shown["content"]
    assert content[0] is first
    assert content[2] is IMAGE
    assert content[3] is last
    wire = envelope(content[1])
    assert wire["sizeBytes"] == len(LARGE)
    assert content[1]["annotations"] == {"priority": 1}
    assert content[1]["_meta"] == {"theirs": 2}
    assert await bank.get(wire["pointer"]) == LARGE
    assert shown["isError"] is False


async def test_where_pointers_stand_is_told_to_programs(bank: Bank) -> None:
    rows = "id,name\n" + "1,x\n" * 2_000
    result = {"content": [text("first"), text(LARGE), text(rows)], "_meta": {"theirs": 1}}

    shown = await show(bank, result)

    first, second = (envelope(shown["content"][at])["pointer"] for at in (1, 2))
    assert shown["_meta"] == {
        "theirs": 1,
        META_ARTIFACTS: [
            {
                "block": 1,
                "pointer": first,
                "uri": f"art://{first.removeprefix('art:')}",
                "sizeBytes": len(LARGE),
                "contentType": "text/plain",
            },
            {
                "block": 2,
                "pointer": second,
                "uri": f"art://{second.removeprefix('art:')}",
                "sizeBytes": len(rows),
                "contentType": "text/csv",
            },
        ],
    }
    assert shown["content"][3:] == [
        {
            "type": "resource_link",
            "uri": f"art://{pointer.removeprefix('art:')}",
            "name": pointer,
            "mimeType": content_type,
            "size": size,
            "annotations": {"audience": ["user"]},
        }
        for pointer, content_type, size in (
            (first, "text/plain", len(LARGE)),
            (second, "text/csv", len(rows)),
        )
    ]


async def test_a_client_that_knows_no_links_gets_none(bank: Bank) -> None:
    shown = await show(bank, {"content": [text(LARGE)]}, links=False)

    assert len(shown["content"]) == 1
    assert len(shown["_meta"][META_ARTIFACTS]) == 1


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1])
async def test_a_result_below_the_limit_is_the_same_object(bank: Bank, size: int) -> None:
    result = {
        "content": [text("x" * size), IMAGE],
        "structuredContent": {"result": "x" * size},
        "isError": False,
        "_meta": {"theirs": 1},
    }

    shown = await show(bank, result)

    assert shown is result
    assert await count(bank) == 0


@pytest.mark.parametrize(
    ("given", "is_banked"), [("漢" * 1_333, False), ("漢" * 1_334, True), ("x" * 4_000, True)]
)
async def test_the_limit_counts_bytes_of_utf_8(bank: Bank, given: str, is_banked: bool) -> None:
    shown = await show(bank, {"content": [text(given)]})

    assert (META_ARTIFACTS in shown.get("_meta", {})) == is_banked


async def test_a_limit_of_zero_makes_a_pointer_of_everything(bank: Bank) -> None:
    shown = await show(bank, {"content": [text("x"), text("")]}, limit_bytes=0)

    assert [envelope(block)["sizeBytes"] for block in shown["content"][:2]] == [1, 0]


UNTOUCHED: list[dict[str, Any]] = [
    IMAGE,
    {"type": "audio", "data": "A" * 80_000, "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///x", "name": "x" * 80_000},
    {"type": "hologram", "source": {"rays": "x" * 80_000}},
    {"type": "text", "data": "x" * 80_000},
    {"type": "text", "text": ["x" * 80_000]},
    {"kind": "text", "text": "x" * 80_000},
    {"type": "resource", "resource": "x" * 80_000},
    {"type": "resource", "resource": {"uri": "a:b", "blob": "?" * 80_000}},
    {"type": "resource", "resource": {"uri": "a:b", "other": "x" * 80_000}},
    {"type": "resource", "resource": {"uri": "a:b", "blob": IMAGE["data"], "mimeType": "image/x"}},
    {"type": "image", "data": ["x" * 80_000]},
    {"type": ["text"], "text": "x" * 80_000},
]


@pytest.mark.parametrize("block", UNTOUCHED)
async def test_what_is_no_text_is_untouched_whatever_its_size(
    bank: Bank, block: dict[str, Any]
) -> None:
    alone = {"content": [block]}

    shown_alone = await show(bank, alone)
    shown_beside = await show(bank, {"content": [text(LARGE), block]})

    assert shown_alone is alone
    assert shown_beside["content"][1] is block
    assert await count(bank) == 1


@pytest.mark.parametrize("odd", [None, "x", 5, {}, ["x" * 80_000], [[]], [None]])
async def test_content_of_any_shape_is_passed_on(bank: Bank, odd: object) -> None:
    result = {"content": odd}

    assert await show(bank, result) is result


async def test_the_flag_of_a_failure_stays_and_its_last_line_is_seen(bank: Bank) -> None:
    trace = "Traceback:\n" + "  File x\n" * 20_000 + "ValueError: boom 42"

    shown = await show(bank, {"content": [text(trace), text("small")], "isError": True})

    wire = envelope(shown["content"][0])
    assert shown["isError"] is True
    assert wire["isError"] is True
    assert "ValueError: boom 42" in wire["glimpse"]
    assert await bank.get(wire["pointer"]) == trace


@pytest.mark.parametrize(
    ("mime_type", "given", "kept"),
    [
        ("text/markdown", LARGE, "text/markdown"),
        ("text/csv", "a,b\n" + "1,2\n" * 2_000, "text/csv"),
        ("text/plain", "a,b\n" + "1,2\n" * 2_000, "text/csv"),
        (None, json.dumps(ROWS), "application/json"),
        ("application/json", LARGE, "text/plain"),
        (7, LARGE, "text/plain"),
    ],
)
async def test_an_embedded_text_is_banked_as_what_it_is_called(
    bank: Bank, mime_type: object, given: str, kept: str
) -> None:
    resource = {"uri": "file:///notes", "mimeType": mime_type, "text": given}
    block = {"type": "resource", "resource": resource, "annotations": {"priority": 1}}

    shown = await show(bank, {"content": [block]})

    wire = envelope(shown["content"][0])
    assert wire["contentType"] == kept
    assert shown["content"][0]["annotations"] == {"priority": 1}
    assert shown["_meta"][META_ARTIFACTS][0]["replaces"] == {
        "uri": "file:///notes",
        "mimeType": mime_type,
    }
    assert await bank.get(wire["pointer"]) == given


async def test_embedded_bytes_that_are_no_media_are_banked_decoded(bank: Bank) -> None:
    payload = b"PK\x03\x04" + bytes(5_000)
    resource = {"uri": "a:b", "mimeType": "application/zip", "blob": base64.b64encode(payload)}
    resource["blob"] = base64.b64encode(payload).decode()

    shown = await show(bank, {"content": [{"type": "resource", "resource": resource}]})

    wire = envelope(shown["content"][0])
    assert wire["contentType"] == "application/zip"
    assert wire["note"] == "pass the pointer to a tool"
    assert await bank.get(wire["pointer"]) == payload


@pytest.mark.parametrize(
    ("image_bytes", "is_banked"), [(None, False), (8_013, False), (8_012, True), (0, True)]
)
async def test_an_image_is_banked_only_where_its_tool_has_a_limit_for_it(
    bank: Bank, image_bytes: int | None, is_banked: bool
) -> None:
    block = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    assert len(block["data"]) == 8_012

    shown = await show(
        bank, {"content": [block, text("caption")]}, image_bytes=image_bytes, limit_bytes=100_000
    )

    assert (shown["content"][0] is not block) == is_banked
    assert shown["content"][1] == text("caption")
    if is_banked:
        wire = envelope(shown["content"][0])
        assert wire["contentType"] == "image/png"
        assert wire["note"] == f'retrieve_context({{"artifactId":"{wire["pointer"]}"}})'
        assert await bank.get(wire["pointer"]) == PNG


@pytest.mark.parametrize("mime_type", ["image/jpeg", "text/html", None, 5])
async def test_an_image_that_is_none_of_its_type_stays_as_it_is(
    bank: Bank, mime_type: object
) -> None:
    block = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": mime_type}
    result = {"content": [block]}

    assert await show(bank, result, image_bytes=0) is result


TWINS: list[tuple[list[dict[str, Any]], object, object]] = [
    ([text(json.dumps({"rows": ROWS}, indent=2))], {"rows": ROWS}, None),
    ([text(json.dumps(ROWS, indent=2))], {"result": ROWS}, None),
    ([text(json.dumps(ROWS))], {"entities": ROWS}, None),
    ([text(json.dumps(ROWS))], ROWS, None),
    ([text(LARGE)], {"result": LARGE}, None),
    ([text(LARGE)], {"content": LARGE}, None),
    ([text(json.dumps(ROWS))], {"result": json.dumps(ROWS)}, None),
    ([text(json.dumps(row)) for row in ROWS], {"result": ROWS}, ROWS),
    ([text(name * 9) for name in NAMES], {"result": [name * 9 for name in NAMES]}, 1),
]


@pytest.mark.parametrize(("content", "structured", "banked"), TWINS)
async def test_structured_content_is_banked_once_with_its_twin(
    bank: Bank, content: list[dict[str, Any]], structured: object, banked: object
) -> None:
    shown = await show(bank, {"content": content, "structuredContent": structured})

    assert "structuredContent" not in shown
    assert [block["type"] for block in shown["content"]] == ["text", "resource_link"]
    assert await count(bank) == 1
    found = await bank.get(envelope(shown["content"][0])["pointer"])
    if banked is None:
        assert found == content[0]["text"]
    else:
        assert found == (structured["result"] if isinstance(structured, dict) else structured)


async def test_a_json_text_is_read_as_json_wherever_it_was_wrapped(bank: Bank) -> None:
    payload = json.dumps(ROWS)

    shown = await show(bank, {"content": [text(payload)], "structuredContent": {"result": payload}})

    pointer = envelope(shown["content"][0])["pointer"]
    assert envelope(shown["content"][0])["contentType"] == "application/json"
    assert (await bank.query(pointer, "SELECT count(*) AS n FROM data")).value == [{"n": 300}]
    assert await bank.payload(pointer) == payload.encode()


async def test_images_that_the_structured_content_repeats_stay_once(bank: Bank) -> None:
    content = [IMAGE, text("caption")]
    result = {"content": content, "structuredContent": {"content": copy.deepcopy(content)}}

    shown = await show(bank, result)

    assert shown == {"content": content}
    assert await count(bank) == 0


async def test_structured_content_that_nothing_repeats_is_banked_unwrapped(bank: Bank) -> None:
    small = text("300 rows")

    shown = await show(bank, {"content": [small, IMAGE], "structuredContent": {"result": ROWS}})

    assert "structuredContent" not in shown
    assert shown["content"][0] is small
    assert shown["content"][1] is IMAGE
    wire = envelope(shown["content"][2])
    assert await bank.get(wire["pointer"]) == ROWS
    (artifact,) = shown["_meta"][META_ARTIFACTS]
    assert artifact["block"] == 2
    assert artifact["structuredContent"] is True


async def test_small_structured_content_beside_a_large_text_it_does_not_repeat_stays(
    bank: Bank,
) -> None:
    structured = {"rows": 3}

    shown = await show(bank, {"content": [text(LARGE)], "structuredContent": structured})

    assert shown["structuredContent"] is structured
    assert envelope(shown["content"][0])["sizeBytes"] == len(LARGE)


async def test_structured_content_over_the_limit_goes_where_its_text_twin_is_below(
    bank: Bank,
) -> None:
    block = text(f"[{','.join(['1e2'] * 900)}]")

    shown = await show(bank, {"content": [block], "structuredContent": {"result": [100.0] * 900}})

    assert len(block["text"]) < LIMIT
    assert shown == {"content": [block]}
    assert await count(bank) == 0


async def test_a_hundred_small_texts_stay_and_more_are_one_list(bank: Bank) -> None:
    few = [text(json.dumps({"id": number, "pad": "x" * 60})) for number in range(100)]
    many = [*few, text('{"id":100,"price":1.50}')]

    shown_few = await show(bank, {"content": few})
    shown_many = await show(bank, {"content": [IMAGE, *many]})

    assert shown_few["content"] == few
    assert shown_many["content"][0] is IMAGE
    pointer = envelope(shown_many["content"][1])["pointer"]
    assert len(shown_many["content"]) == 3
    assert await bank.get(f"{pointer}#/100/id") == 100
    assert '"price":1.50' in str(await bank.get(pointer))


async def test_many_texts_beside_small_structured_content_are_one_list_too(bank: Bank) -> None:
    many = [text(f"line {number} " + "x" * 40) for number in range(101)]

    shown = await show(bank, {"content": many, "structuredContent": {"lines": 101}})

    assert shown["structuredContent"] == {"lines": 101}
    assert await bank.get(envelope(shown["content"][0])["pointer"]) == [
        block["text"] for block in many
    ]


async def test_an_envelope_of_a_proxy_further_in_passes_as_it_is(bank: Bank) -> None:
    inner = await show(bank, {"content": [text(LARGE)], "structuredContent": {"result": LARGE}})

    outer = await show(Bank(MemoryStore()), inner, limit_bytes=0)

    assert outer is inner


@pytest.mark.parametrize(
    "forged",
    [
        {"block": 0},
        {"block": 2},
        {"block": -2},
        {"pointer": "art:00000000-0000-4000-8000-000000000005"},
        {"uri": "art://00000000-0000-4000-8000-000000000005"},
        {"uri": "https://example.com/"},
    ],
)
async def test_what_a_server_says_under_our_key_and_does_not_show_goes(
    bank: Bank, forged: dict[str, object]
) -> None:
    inner = await show(bank, {"content": [text("small"), text(LARGE)]})
    (told,) = inner["_meta"][META_ARTIFACTS]

    cleaned = without_forged({**inner, "_meta": {"a": 1, META_ARTIFACTS: [{**told, **forged}]}})
    mixed = without_forged({**inner, "_meta": {META_ARTIFACTS: [5, told, {**told, **forged}]}})

    assert cleaned == {**inner, "_meta": {"a": 1}}
    assert mixed == {**inner, "_meta": {META_ARTIFACTS: [told]}}
    assert without_forged(inner) is inner


@pytest.mark.parametrize("told", [None, 5, {}, [], [[]]])
def test_what_is_no_list_of_artifacts_goes(told: object) -> None:
    assert without_forged({"content": 5, "_meta": {META_ARTIFACTS: told}})["_meta"] == {}


async def test_artifacts_of_a_proxy_further_in_stand_before_ours(bank: Bank) -> None:
    inner = await show(bank, {"content": [text(LARGE), text("x" * 5_000)]})

    outer = await show(bank, {**inner, "content": [*inner["content"], text("y" * 9_000)]})

    artifacts = outer["_meta"][META_ARTIFACTS]
    assert artifacts[:2] == inner["_meta"][META_ARTIFACTS]
    assert [each["sizeBytes"] for each in artifacts] == [len(LARGE), 5_000, 9_000]


@pytest.mark.parametrize(
    "given",
    [
        '{"pointer":"art:deco","preview":"","sizeBytes":1,"note":""}' + " " * LIMIT,
        '{"pointer":"art:00000000-0000-4000-8000-000000000005","other":1}' + " " * LIMIT,
        '{"pointer":"' + "x" * LIMIT,
    ],
)
async def test_what_only_begins_like_an_envelope_is_offloaded(bank: Bank, given: str) -> None:
    shown = await show(bank, {"content": [text(given)]})

    assert envelope(shown["content"][0])["sizeBytes"] == len(given)


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [200, 300, 900])
async def test_structured_content_of_any_depth_is_banked(bank: Bank, depth: int) -> None:
    structured = {"deep": nested(depth), "pad": ["x" * 100] * 50}
    own, twins = [text("small")], [text(json.dumps(structured))]

    shown, _ = await shown_result({"content": own, "structuredContent": structured}, rule(bank))
    twin, _ = await shown_result({"content": twins, "structuredContent": structured}, rule(bank))

    assert "structuredContent" not in shown
    assert await bank.payload(envelope(shown["content"][1])["pointer"]) == (
        json.dumps(structured, separators=(",", ":")).encode()
    )
    assert "structuredContent" not in twin
    assert [block["type"] for block in twin["content"]] == ["text", "resource_link"]


async def test_structured_content_too_deep_for_python_passes_as_it_is(bank: Bank) -> None:
    structured = {"deep": nested(100_000)}
    content = [text(LARGE), text("[" * 100_000 + "]" * 100_000)]
    same = [text(json.dumps("x").join(("[" * 1_010, "]" * 1_010)) + " " * LIMIT)]

    shown, _ = await shown_result({"content": content, "structuredContent": structured}, rule(bank))
    alike, _ = await shown_result(
        {"content": same, "structuredContent": {"result": nested(1_010)}}, rule(bank)
    )

    assert envelope(alike["content"][0])["sizeBytes"] == len(same[0]["text"])
    assert shown["structuredContent"] is structured
    assert [envelope(block)["sizeBytes"] for block in shown["content"][:2]] == [len(LARGE), 200_000]


async def test_a_lone_surrogate_is_shown_as_a_replacement(bank: Bank) -> None:
    shown = await show(bank, {"content": [text("ok \ud83d end")]})

    assert shown["content"] == [text("ok \ufffd end")]


async def test_a_result_gives_the_same_bytes_each_time(bank: Bank) -> None:
    result = {"content": [text(LARGE), IMAGE, text(json.dumps(ROWS))], "isError": False}

    shown = {json.dumps(await show(bank, copy.deepcopy(result))) for _ in range(3)}

    assert len(shown) == 1
    assert await count(bank) == 2


async def test_without_identity_each_result_has_a_pointer_of_its_own(bank: Bank) -> None:
    result = {"content": [text(LARGE)]}

    shown = [await show(bank, result, ttl_seconds=60) for _ in range(2)]

    first, second = (envelope(each["content"][0])["pointer"] for each in shown)
    assert first != second
    artifact = await bank.find(first)
    assert artifact is not None
    assert artifact.expires_at is not None


class Broken(MemoryStore):
    """A store whose disk is full."""

    async def put(self, key: str, payload: bytes) -> None:
        raise StoreUnavailableError("disk full")


async def test_what_cannot_be_kept_passes_whole(caplog: pytest.LogCaptureFixture) -> None:
    structured = {"result": ROWS}
    zipped = {"uri": "a:b", "blob": "A" * 80_000, "mimeType": "application/zip"}
    blocks = [text(LARGE), {"type": "resource", "resource": zipped}, text(json.dumps(ROWS))]
    result = {"content": blocks, "structuredContent": structured}

    shown = await show(Bank(Broken()), result)

    assert shown == {"content": blocks}  # the last of which says what the structured content did
    assert "was not kept" in caplog.text


async def test_lists_and_structures_that_cannot_be_kept_pass_as_they_are() -> None:
    rows = {"content": [text(json.dumps(row)) for row in ROWS]}
    alone = {"content": [text("300 rows")], "structuredContent": {"rows": ROWS}}

    assert await show(Bank(Broken()), rows) is rows
    assert await show(Bank(Broken()), alone) is alone


async def test_what_cannot_be_kept_and_is_long_passes_in_part_with_a_notice() -> None:
    long = "head " + "x" * 300_000 + " tail"
    items = [{"id": number, "pad": "x" * 90} for number in range(3_000)]

    shown = await show(Bank(Broken()), {"content": [text(long)]})
    repeated = await show(
        Bank(Broken()), {"content": [text(long)], "structuredContent": {"result": long}}
    )
    alone = await show(Bank(Broken()), {"content": [], "structuredContent": {"result": items}})
    embedded = {"type": "resource", "resource": {"uri": "a:b", "text": long}}
    inside = await show(Bank(Broken()), {"content": [embedded]})

    notice = re.compile(r"was not kept\. 250,010 of 300,010 characters are left out here")
    (block,) = shown["content"]
    assert notice.search(block["text"])
    assert block["text"].startswith("head ")
    assert block["text"].endswith(" tail")
    assert repeated == shown
    assert "was not kept" in alone["content"][0]["text"]
    assert "structuredContent" not in alone
    assert notice.search(inside["content"][0]["resource"]["text"])
    assert inside["content"][0]["resource"]["uri"] == "a:b"


BLOCKS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.integers(0, 2 * LIMIT).map(lambda size: text("x" * size)),
    st.integers(0, 2 * LIMIT).map(
        lambda size: {"type": "resource", "resource": {"uri": "a:b", "text": "y" * size}}
    ),
    st.sampled_from(UNTOUCHED),
    st.text(max_size=20).map(text),
)


@given(
    content=st.lists(
        st.sampled_from(UNTOUCHED) | st.text(max_size=LIMIT // 4 - 1).map(text), max_size=6
    ),
    structured=st.sampled_from([None, {"a": 1}, {"result": "x"}, [1, 2]]),
)
async def test_any_result_whose_parts_are_below_the_limit_is_the_same_object(
    content: list[dict[str, Any]], structured: object
) -> None:
    result = {"content": content, "structuredContent": structured, "isError": True}

    assert await show(Bank(MemoryStore()), result) is result


@given(
    content=st.lists(BLOCKS, max_size=6),
    is_error=st.sampled_from([None, False, True]),
    structured=st.sampled_from([None, {"a": 1}, {"result": "x" * LIMIT}, {"rows": ROWS}]),
)
async def test_any_mix_of_blocks_keeps_its_order_and_its_flags(
    content: list[dict[str, Any]], is_error: bool | None, structured: object
) -> None:
    result: dict[str, Any] = {"content": content, "_meta": {"theirs": 1}}
    if is_error is not None:
        result["isError"] = is_error
    if structured is not None:
        result["structuredContent"] = structured
    bank = Bank(MemoryStore())

    shown = await show(bank, result)

    assert shown.get("isError") == is_error
    assert shown["_meta"]["theirs"] == 1
    artifacts = {each["block"]: each for each in shown["_meta"].get(META_ARTIFACTS, [])}
    for at, block in enumerate(content):
        now = shown["content"][at]
        if at not in artifacts:
            assert now == block
            continue
        whole = block["text"] if block["type"] == "text" else block["resource"]["text"]
        assert len(whole) >= LIMIT
        assert await bank.get(artifacts[at]["pointer"]) == whole
    added = shown["content"][len(content) :]
    assert len([each for each in added if each["type"] == "resource_link"]) == len(artifacts)
    if shown is not result:
        assert artifacts or structured == {"result": "x" * LIMIT}
    if structured == {"rows": ROWS}:
        assert "structuredContent" not in shown
