from pathlib import Path
from typing import Any

import pytest

from coatcheck import Bank, Mirror, UnknownPointerError
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import MemoryStore

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "body": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "items": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        "open": {},
        "nested": {"type": "object", "properties": {"ids": {"type": "array"}}},
        "flags": True,
    },
    "$defs": {"row": {"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}},
}


@pytest.fixture
def owner() -> Mirror:
    return Mirror(Bank(MemoryStore()))


async def test_arguments_may_be_the_text_a_model_wrote(owner: Mirror) -> None:
    pointer = (await owner.bank.put([1])).pointer

    assert await owner.resolve(f'{{"items": "{pointer}", "text": "\\ud83c\\udf78"}}') == {
        "items": [1],
        "text": "\U0001f378",
    }
    assert await owner.resolve(" ") == {}


@pytest.mark.parametrize("text", ["[1]", "{", "null", '"x"', "[" * 100_000])
async def test_text_that_is_no_object_is_refused(owner: Mirror, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not a JSON object"):
        await owner.resolve(text)


async def test_the_caller_s_arguments_are_not_changed(owner: Mirror) -> None:
    pointer = (await owner.bank.put([1])).pointer
    arguments = {"q": {"ids": pointer}, "plain": [1]}

    resolved = await owner.resolve(arguments)

    assert resolved == {"q": {"ids": [1]}, "plain": [1]}
    assert arguments == {"q": {"ids": pointer}, "plain": [1]}


async def test_a_schema_decides_whether_text_is_parsed(owner: Mirror) -> None:
    text = (await owner.bank.put("[1, 2]")).pointer
    rows = (await owner.bank.put([3])).pointer
    number = (await owner.bank.put("7")).pointer

    arguments = {
        "body": rows,
        "maybe": rows,
        "items": [{"text": rows, "n": number}],
        "either": text,
        "open": text,
        "nested": {"ids": text, "other": text},
        "flags": text,
        "unlisted": text,
    }

    assert await owner.resolve(arguments, SCHEMA) == {
        "body": "[3]",
        "maybe": "[3]",
        "items": [{"text": "[3]", "n": 7}],
        "either": "[1, 2]",
        "open": "[1, 2]",
        "nested": {"ids": [1, 2], "other": "[1, 2]"},
        "flags": "[1, 2]",
        "unlisted": "[1, 2]",
    }


async def test_an_unknown_pointer_is_an_error_at_any_depth(owner: Mirror) -> None:
    with pytest.raises(UnknownPointerError):
        await owner.resolve({"a": [{"b": UNKNOWN}]})


async def test_array_and_object_parameters_of_a_schema_are_widened(owner: Mirror) -> None:
    schema = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"type": "integer"}, "description": "the ids"},
            "row": {"$ref": "#/$defs/row"},
            "several": {"anyOf": [{"type": "array"}, {"type": "null"}], "default": None},
            "n": {"type": "integer"},
            "any": True,
        },
        "required": ["items"],
        "$defs": {"row": {"type": "object"}, "loop": {"$ref": "#/$defs/loop"}},
        "additionalProperties": False,
    }
    before = repr(schema)

    wider = owner.schema(schema)

    pointer = wider["properties"]["items"]["anyOf"][1]
    assert pointer["type"] == "string"
    assert wider["properties"]["items"]["description"] == "the ids"
    assert wider["properties"]["items"]["anyOf"][0] == {
        "type": "array",
        "items": {"type": "integer"},
    }
    assert wider["properties"]["row"]["anyOf"] == [{"$ref": "#/$defs/row"}, pointer]
    assert wider["properties"]["several"] == {
        "anyOf": [{"type": "array"}, {"type": "null"}, pointer],
        "default": None,
    }
    assert wider["properties"]["n"] == {"type": "integer"}
    assert wider["properties"]["any"] is True
    assert {key: value for key, value in wider.items() if key != "properties"} == {
        key: value for key, value in schema.items() if key != "properties"
    }
    assert repr(schema) == before
    assert owner.schema({"type": "object"}) == {"type": "object"}


async def test_a_schema_that_refers_to_itself_ends(owner: Mirror) -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}}

    assert owner.schema(schema) == schema
    assert owner.schema({"properties": {"x": {"$ref": "#/no/where"}}}) == {
        "properties": {"x": {"$ref": "#/no/where"}}
    }


ODD: list[object] = [None, 5, "array", [], [None], [{}], {}, {"x": None}, True, [["array"]]]


@pytest.mark.parametrize(
    "word",
    ["type", "properties", "anyOf", "oneOf", "allOf", "$ref", "items", "prefixItems", "title"],
)
@pytest.mark.parametrize("odd", ODD)
async def test_a_schema_of_any_shape_is_read(owner: Mirror, word: str, odd: object) -> None:
    pointer = (await owner.bank.put({"a": 1})).pointer
    inner = {"properties": {"x": {word: odd}}}
    schemas: list[dict[str, Any]] = [{word: odd}, inner, {"properties": {"x": {"anyOf": [inner]}}}]

    for schema in schemas:
        wider = owner.schema(schema)
        assert set(wider) == set(schema)
        for arguments in ({"x": pointer}, {"x": {"x": pointer}}, {"x": [pointer]}):
            resolved = await owner.resolve(arguments, schema)
            assert pointer not in str(resolved)


async def test_what_is_no_schema_is_left_as_it_is(owner: Mirror) -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"type": None}, "b": {"anyOf": None}, "c": {"type": [{}, 5]}, "d": 7}
    }

    assert owner.schema(schema) == schema
    assert owner.schema({"properties": None}) == {"properties": None}


async def test_an_envelope_that_code_was_given_is_its_pointer(owner: Mirror) -> None:
    envelope = await owner.offload(list(range(20_000)))

    def total(items: list[int]) -> int:
        return sum(items)

    def count(*lists: list[int]) -> int:
        return sum(map(len, lists))

    assert owner.wrap(total)(envelope) == sum(range(20_000))
    assert owner.wrap(count)(envelope, envelope) == 40_000
    assert await owner.resolve({"lists": [envelope]}) == {"lists": [list(range(20_000))]}


async def test_text_that_is_a_table_is_its_rows_for_an_array_alone(owner: Mirror) -> None:
    text = "id,name\n1,x\n2,y\n3,z\n"
    pointer = (await owner.bank.put(text)).pointer

    found = await owner.resolve(dict.fromkeys(("items", "either", "body", "open"), pointer), SCHEMA)

    assert found["items"] == [
        {"id": "1", "name": "x"},
        {"id": "2", "name": "y"},
        {"id": "3", "name": "z"},
    ]
    assert (found["either"], found["body"], found["open"]) == (text, text, text)


@pytest.mark.parametrize("bank", ["file:store", None, MemoryStore()])
def test_what_is_no_bank_is_refused_by_name(bank: Any) -> None:
    with pytest.raises(TypeError, match="open_bank"):
        Mirror(bank)


@pytest.mark.parametrize("address", ["file:store", Path("store")])
def test_an_address_is_no_store(address: Any) -> None:
    with pytest.raises(TypeError, match="open_bank opens"):
        Bank(address)
