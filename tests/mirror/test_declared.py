"""Arguments that go on as JSON: what stands behind a pointer, as a tool's schema declares it."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from coatcheck import Bank, Mirror, UnknownPointerError
from coatcheck.stores import MemoryStore

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


SCHEMA: dict[str, Any] = {
    "properties": {
        "text": {"type": "string"},
        "base64": {"type": "string", "contentEncoding": "base64"},
        "bytes": {"type": "string", "format": "byte"},
        "url_safe": {"type": "string", "format": "base64url"},
        "either": {"anyOf": [{"type": "array"}, {"type": "string"}]},
        "object_or_text": {"type": ["object", "string"]},
        "any": {},
    }
}


def fits(_: Mapping[str, object]) -> bool:
    return True


async def test_bytes_become_base64_where_they_are_no_text_or_it_is_asked_for(bank: Bank) -> None:
    image = (await bank.put(b"\xff\xfe?>")).pointer
    plain = (await bank.put(b"plain")).pointer
    names = dict.fromkeys(("text", "base64", "bytes", "any"), image)

    inspected = await Mirror(bank).inspect({**names, "url_safe": image}, SCHEMA, fits=fits)
    of_text = await Mirror(bank).inspect({"text": plain, "base64": plain}, SCHEMA, fits=fits)

    coded = base64.b64encode(b"\xff\xfe?>").decode()
    assert "/" in coded
    assert inspected.arguments == {**dict.fromkeys(names, coded), "url_safe": "__4_Pg=="}
    assert of_text.arguments == {"text": "plain", "base64": "cGxhaW4="}


async def test_an_array_becomes_its_rows(bank: Bank) -> None:
    pointer = (await bank.put(np.arange(4).reshape(2, 2))).pointer

    inspected = await Mirror(bank).inspect({"any": pointer, "text": [pointer]}, fits=fits)

    assert inspected.arguments == {"any": [[0, 1], [2, 3]], "text": [[[0, 1], [2, 3]]]}
    assert json.dumps(inspected.arguments)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("either", "[1, 2]", [1, 2]),
        ("either", '{"a": 1}', '{"a": 1}'),
        ("either", "[1, 2", "[1, 2"),
        ("object_or_text", '{"a": 1}', {"a": 1}),
        ("object_or_text", "[1, 2]", "[1, 2]"),
        ("any", "[1, 2]", "[1, 2]"),
        ("text", "[1, 2]", "[1, 2]"),
    ],
)
async def test_a_text_that_holds_a_structure_becomes_it_where_both_may_stand(
    bank: Bank, name: str, text: str, expected: object
) -> None:
    pointer = (await bank.put(text)).pointer

    inspected = await Mirror(bank).inspect({name: pointer}, SCHEMA, fits=fits)

    assert inspected.arguments == {name: expected}
    assert inspected.pointers == (pointer,)


async def test_it_stays_text_where_the_structure_does_not_fit(bank: Bank) -> None:
    pointer = (await bank.put("[1, 2]")).pointer

    inspected = await Mirror(bank).inspect(
        {"either": [pointer], "n": pointer}, SCHEMA, fits=lambda given: given["n"] == "no"
    )
    whole = await Mirror(bank).inspect(
        {"either": pointer}, SCHEMA, fits=lambda given: isinstance(given["either"], str)
    )

    assert inspected.arguments == {"either": ["[1, 2]"], "n": "[1, 2]"}
    assert whole.arguments == {"either": "[1, 2]"}


async def test_what_only_looks_like_a_pointer_is_not_one_that_was_resolved(bank: Bank) -> None:
    digest = "md5-0123456789abcdef0123456789abcdef"

    inspected = await Mirror(bank).inspect({"any": digest}, SCHEMA, fits=fits)

    assert inspected.arguments == {"any": digest}
    assert inspected.pointers == ()


async def test_a_pointer_that_is_unknown_here_may_be_left_as_it_is(bank: Bank) -> None:
    pointer = (await bank.put([1])).pointer
    arguments = {"any": [UNKNOWN, pointer, f"{UNKNOWN}#/0"], "text": "plain"}

    inspected = await Mirror(bank).inspect(arguments, SCHEMA, fits=fits, leaves_unknown=True)

    assert inspected.arguments == {"any": [UNKNOWN, [1], f"{UNKNOWN}#/0"], "text": "plain"}
    assert inspected.pointers == (pointer,)
    with pytest.raises(UnknownPointerError):
        await Mirror(bank).inspect(arguments, SCHEMA, fits=fits)
