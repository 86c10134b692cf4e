"""`retrieve_context` as a tool of the proxy's own."""

import base64
import json
from typing import Any

import pytest

from coatcheck import Bank, UnknownPointerError
from coatcheck.apps.proxy._reader import answer, definition, failed
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore
from coatcheck.tools import retrieval_tools

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(90)


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


async def ask(
    bank: Bank,
    arguments: object,
    *,
    shows_images: bool = False,
    is_anonymous: bool = False,
) -> dict[str, Any]:
    (tool,) = retrieval_tools(bank)
    params = {"name": "retrieve_context", "arguments": arguments}
    return await answer(bank, tool, params, shows_images=shows_images, is_anonymous=is_anonymous)


def said(result: dict[str, Any]) -> Any:
    (block,) = result["content"]
    assert block["type"] == "text"
    return json.loads(block["text"])


async def test_a_page_is_the_reply_of_the_tool(bank: Bank) -> None:
    artifact = await bank.put("alpha beta")

    result = await ask(bank, {"artifactId": artifact.pointer, "offset": 6})

    assert result["isError"] is False
    assert said(result) == {
        "content": "beta",
        "totalSize": 10,
        "hasMore": False,
        "offset": 6,
        "limit": 50_000,
    }


async def test_a_failure_is_flagged(bank: Bank) -> None:
    result = await ask(bank, {"artifactId": UNKNOWN})

    assert result["isError"] is True
    assert said(result)["error"] == "unknown-pointer"


async def test_content_that_looks_like_a_failure_is_none(bank: Bank) -> None:
    artifact = await bank.put('{"error":"x","message":"y","hint":"z"}')

    result = await ask(bank, {"artifactId": artifact.pointer})

    assert result["isError"] is False


@pytest.mark.parametrize("arguments", ["x", [], 5, '{"artifactId":"greek"}'])
async def test_arguments_that_are_no_object_are_refused(bank: Bank, arguments: object) -> None:
    await bank.put("alpha", name="greek")
    (tool,) = retrieval_tools(bank)

    result = await answer(
        bank, tool, {"arguments": arguments}, shows_images=True, is_anonymous=True
    )

    assert result["isError"] is True
    assert said(result)["error"] == "invalid-argument"


@pytest.mark.parametrize("params", [{}, {"arguments": None}])
async def test_a_call_without_arguments_is_told_what_is_required(
    bank: Bank, params: dict[str, object]
) -> None:
    (tool,) = retrieval_tools(bank)

    result = await answer(bank, tool, params, shows_images=True, is_anonymous=False)

    assert "artifactId is required" in said(result)["message"]


async def test_an_image_is_shown_where_images_are_banked(bank: Bank) -> None:
    image = await bank.put(PNG, name="shot", content_type="image/png")
    block = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}

    for asked in (image.pointer, image.id, "shot"):
        shown = await ask(bank, {"artifactId": asked}, shows_images=True)
        assert shown == {"content": [block], "isError": False}
    refused = await ask(bank, {"artifactId": image.pointer})

    assert said(refused)["error"] == "binary"
    assert block["data"] not in str(refused)


@pytest.mark.parametrize("asking", [{"search": "x"}, {"query": "$"}])
async def test_an_image_that_is_searched_is_binary(bank: Bank, asking: dict[str, object]) -> None:
    image = await bank.put(PNG, content_type="image/png")

    result = await ask(bank, {"artifactId": image.pointer, **asking}, shows_images=True)

    assert result["isError"] is True


async def test_an_image_that_is_text_is_read_as_text(bank: Bank) -> None:
    image = await bank.put("<svg/>", content_type="image/svg+xml")

    result = await ask(bank, {"artifactId": image.pointer}, shows_images=True)

    assert said(result)["content"] == "<svg/>"


async def test_what_is_no_image_is_read_as_ever_where_images_are_shown(bank: Bank) -> None:
    artifact = await bank.put("alpha")

    result = await ask(bank, {"artifactId": artifact.pointer}, shows_images=True)

    assert said(result)["content"] == "alpha"


async def test_a_number_for_an_artifact_is_refused_where_images_are_shown(bank: Bank) -> None:
    result = await ask(bank, {"artifactId": 5}, shows_images=True)

    assert said(result)["error"] == "invalid-argument"


async def test_without_identity_there_are_no_names(bank: Bank) -> None:
    artifact = await bank.put([{"id": 1}], name="rows")

    by_name = await ask(bank, {"artifactId": "rows"}, is_anonymous=True)
    saved = await ask(
        bank, {"artifactId": artifact.pointer, "query": "$", "saveAs": "x"}, is_anonymous=True
    )
    by_pointer = await ask(bank, {"artifactId": artifact.pointer}, is_anonymous=True)
    by_id = await ask(bank, {"artifactId": artifact.id}, is_anonymous=True)
    queried = await ask(
        bank, {"artifactId": artifact.pointer, "query": "$[0].id"}, is_anonymous=True
    )
    part = await ask(bank, {"artifactId": f"{artifact.pointer}#/0/id"}, is_anonymous=True)

    assert said(by_name)["error"] == "unknown-pointer"
    assert said(saved)["error"] == "invalid-argument"
    assert await bank.find("x") is None
    assert said(by_pointer)["content"] == said(by_id)["content"] == '[{"id":1}]'
    assert said(queried)["value"] == 1
    assert said(part)["content"] == "1"


@pytest.mark.parametrize(
    "asking", [{}, {"search": "x"}, {"query": "$"}, {"query": f'SELECT * FROM "{UNKNOWN}"'}]
)
async def test_without_identity_no_failure_tells_of_another_pointer(
    bank: Bank, asking: dict[str, object]
) -> None:
    other = await bank.put("alpha")
    asked = UNKNOWN if "SELECT" not in str(asking) else other.pointer

    known = await ask(bank, {"artifactId": asked, **asking})
    anonymous = await ask(bank, {"artifactId": asked, **asking}, is_anonymous=True)

    assert said(known)["error"] == said(anonymous)["error"] == "unknown-pointer"
    assert other.pointer in said(known)["hint"]
    assert other.pointer not in said(anonymous)["hint"]
    assert said(known)["message"] == said(anonymous)["message"]


async def test_without_identity_a_table_that_is_not_there_has_no_neighbours(bank: Bank) -> None:
    own, other = await bank.put([{"id": 1}]), await bank.put([{"id": 2}])
    asking = {"artifactId": own.pointer, "query": "SELECT * FROM nosuch"}

    known = said(await ask(bank, asking))
    anonymous = said(await ask(bank, asking, is_anonymous=True))

    assert other.pointer in known["hint"]
    assert other.id not in str(anonymous)
    assert anonymous["message"] == known["message"]
    assert known["hint"].startswith(anonymous["hint"])
    assert anonymous["hint"]


async def test_without_identity_other_failures_stay_as_they_are(bank: Bank) -> None:
    artifact = await bank.put("alpha")
    asking = {"artifactId": artifact.pointer, "offset": -1}

    assert await ask(bank, asking, is_anonymous=True) == await ask(bank, asking)


async def test_an_outage_is_told_where_an_image_is_looked_for() -> None:
    class Down(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            raise StoreUnavailableError("no route")

    result = await ask(Bank(Down()), {"artifactId": UNKNOWN}, shows_images=True)

    assert said(result)["error"] == "store-unavailable"


def test_the_definition_lets_hosts_show_the_longest_page_whole(bank: Bank) -> None:
    (tool,) = retrieval_tools(bank)

    listed = definition(tool)

    assert listed == {
        "name": "retrieve_context",
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"anthropic/maxResultSizeChars": 500_000},
    }


def test_an_error_is_a_result_that_a_model_reads() -> None:
    result = failed(UnknownPointerError(UNKNOWN))

    assert result["isError"] is True
    assert said(result)["error"] == "unknown-pointer"
    assert said(failed(ConnectionError("10.0.0.1 said no")))["error"] == "store-unavailable"
    assert "10.0.0.1" not in str(failed(ConnectionError("10.0.0.1 said no")))
