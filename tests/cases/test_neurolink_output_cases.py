"""The cases of seed 004 on a second cap for tool results: here nothing is cut.

What that cap shortened, with a notice of what was lost, is offloaded block by block instead.
"""

import json
from typing import Any

import pytest

from coatcheck import Bank, Envelope, Limits, Mirror
from coatcheck.apps.proxy._acts import Acts
from coatcheck.apps.proxy._results import META_ARTIFACTS
from coatcheck.apps.proxy._scope import Scope
from coatcheck.apps.proxy._settings import Settings
from coatcheck.tools import retrieval_tools

Json = dict[str, Any]
BUDGET = 51_200


@pytest.fixture
def acts(bank: Bank) -> Acts:
    return Acts(bank, Settings())


@pytest.fixture
def scope(acts: Acts) -> Scope:
    return acts.scope()


def text(given: str) -> Json:
    return {"type": "text", "text": given}


def whole_of(bank: Bank, scope: Scope, block: Json) -> Any:
    return bank.scoped(scope.name).get(json.loads(block["text"])["pointer"])


async def test_c62_one_large_text_becomes_an_envelope_in_the_same_list(
    acts: Acts, bank: Bank, scope: Scope
) -> None:
    result = {"content": [text("x" * 60_000)], "isError": False}

    shown = await acts.result(scope, "s", "t", result)

    (block, _link) = shown["content"]
    assert shown["isError"] is False
    assert len(json.dumps(shown)) <= BUDGET + 500
    assert await whole_of(bank, scope, block) == "x" * 60_000


async def test_c62_a_host_without_the_read_tool_is_not_told_of_it(bank: Bank) -> None:
    shown = await Mirror(bank, reader=None).offload_part("x" * 60_000, "t")

    assert isinstance(shown, Envelope)
    assert "retrieve_context" not in str(shown)


async def test_c63_what_is_nested_in_a_plain_result_is_offloaded_with_its_fields(
    bank: Bank,
) -> None:
    result = {"success": True, "data": {"content": [text("x" * 60_000)], "isError": False}}

    shown = await Mirror(bank).offload(result, tool="t")

    assert isinstance(shown, Envelope)
    assert await bank.get(shown.pointer) == result
    assert (await bank.query(shown.pointer, "success")).value is True
    assert await bank.get(f"{shown.pointer}#/data/content/0/text") == "x" * 60_000


async def test_c64_the_envelope_names_the_read_tool_that_is_listed(
    acts: Acts, scope: Scope
) -> None:
    shown = await acts.result(scope, "s", "t", {"content": [text("x" * 60_000)]})

    (tool,) = acts.own_tools
    wire = json.loads(shown["content"][0]["text"])
    assert wire["note"] == f'{tool["name"]}({{"artifactId":"{wire["pointer"]}"}})'


async def test_c65_the_flag_of_a_failure_survives(acts: Acts, scope: Scope) -> None:
    shown = await acts.result(scope, "s", "t", {"content": [text("x" * 60_000)], "isError": True})

    assert shown["isError"] is True
    assert json.loads(shown["content"][0]["text"])["isError"] is True


async def test_c66_an_image_beside_a_large_text_is_untouched(acts: Acts, scope: Scope) -> None:
    image = {"type": "image", "data": "A" * 9_000, "mimeType": "image/png"}

    shown = await acts.result(scope, "s", "t", {"content": [image, text("x" * 60_000)]})

    assert shown["content"][0] is image
    assert "pointer" in json.loads(shown["content"][1]["text"])


@pytest.mark.parametrize(("size", "is_kept"), [(2_047, True), (2_048, False), (5_000, False)])
async def test_c67_a_budget_of_one_tool_counts(bank: Bank, size: int, is_kept: bool) -> None:
    acts = Acts(bank, Settings(limits=Limits(per_tool={"t": 2_048})))

    shown = await acts.result(acts.scope(), "s", "t", {"content": [text("x" * size)]})

    assert (shown["content"] == [text("x" * size)]) == is_kept
    assert is_kept or len(shown["content"][0]["text"]) < 600


async def test_c68_a_small_result_is_unchanged(acts: Acts, scope: Scope) -> None:
    result = {"content": [text("small"), text("")], "isError": False, "_meta": {"a": 1}}

    assert await acts.result(scope, "s", "t", result) is result


async def test_c69_twenty_small_texts_stay_whole_each(acts: Acts, scope: Scope) -> None:
    result = {"content": [text(f"{number:02}" + "x" * 2_998) for number in range(20)]}

    assert await acts.result(scope, "s", "t", result) is result


async def test_c70_five_large_texts_become_five_envelopes_each_with_its_own_head(
    acts: Acts, bank: Bank, scope: Scope
) -> None:
    texts = [f"{letter}" + "." * 59_998 + f"{letter}" for letter in "abcde"]

    shown = await acts.result(
        scope, "s", "t", {"content": [text(each) for each in texts], "isError": True}
    )

    assert shown["isError"] is True
    assert len(json.dumps(shown)) <= BUDGET
    assert [each["block"] for each in shown["_meta"][META_ARTIFACTS]] == [0, 1, 2, 3, 4]
    blocks: list[Json] = shown["content"]
    for block, whole in zip(blocks, texts, strict=False):
        assert json.loads(block["text"])["preview"].startswith(whole[0])
        assert await whole_of(bank, scope, block) == whole


async def test_c71_a_large_image_with_a_caption_stays_or_is_offloaded_as_the_tool_says(
    acts: Acts, bank: Bank, scope: Scope
) -> None:
    image = {"type": "image", "data": "iVBORw0KGgoA" * 5_000, "mimeType": "image/png"}
    result = {"content": [image, text("caption")]}

    kept = await acts.result(scope, "s", "t", result)
    offloading = Acts(bank, Settings(image_bytes={"t": 51_200}))
    shown = await offloading.result(scope, "s", "t", result)
    read = await offloading.call_own(
        scope, {"arguments": {"artifactId": json.loads(shown["content"][0]["text"])["pointer"]}}
    )

    assert kept is result
    assert json.loads(shown["content"][0]["text"])["sizeBytes"] == 45_000
    assert shown["content"][1] == text("caption")
    assert read["content"] == [image]


async def test_c72_a_large_plain_object_becomes_an_envelope_with_a_preview(bank: Bank) -> None:
    value = {"rows": ["x" * 100] * 600}

    shown = await Mirror(bank).offload(value, tool="t")

    assert isinstance(shown, Envelope)
    assert shown.size_bytes > 60_000
    assert shown.preview.startswith('{"rows":["xxx')
    assert await bank.get(shown.pointer) == value


@pytest.mark.parametrize("payload", ["y" * 200_000, "line\n" * 3_000, '"\\\n' * 50_000])
async def test_c73_a_window_comes_back_exact_through_the_whole_path(
    acts: Acts, scope: Scope, bank: Bank, payload: str
) -> None:
    artifact = await bank.scoped(scope.name).put(payload)
    asked = {"artifactId": artifact.pointer, "offset": 3, "limit": 60_000}

    result: Any = await acts.call_own(scope, {"arguments": asked})
    shown: Any = await acts.result(scope, "proxy", "retrieve_context", result)

    (tool,) = retrieval_tools(bank.scoped(scope.name))
    assert shown["content"][0]["text"] == await tool.call(asked)
    assert json.loads(shown["content"][0]["text"])["content"] == payload[3:60_003]
