from typing import Any

import pytest
from pydantic import BaseModel

from coatcheck import Bank, Mirror, mirror
from coatcheck.errors import UnencodableValueError
from coatcheck.mirror import definition
from coatcheck.stores import MemoryStore


class Line(BaseModel):
    title: str
    count: int = 1


class Order(BaseModel):
    lines: list[Line]
    tags: dict[str, int] = {}


async def send(order: Order, note: str | None = None) -> str:
    """Send an order.

    In one piece.
    """
    return f"{order} {note}"


@pytest.fixture
def tool() -> Any:
    return mirror(send, Bank(MemoryStore()))


def test_a_definition_is_name_docstring_and_the_schema_of_the_signature(tool: Any) -> None:
    found = definition(tool)

    assert list(found) == ["name", "description", "parameters"]
    assert found["name"] == "send"
    assert found["description"] == "Send an order.\n\nIn one piece."
    assert found["parameters"]["required"] == ["order"]
    assert "pattern" in found["parameters"]["properties"]["order"]["anyOf"][1]


def test_an_argument_called_title_or_properties_stays() -> None:
    def make(title: str, properties: dict[str, str]) -> None:
        """Make."""

    found = definition(make)["parameters"]

    assert found["properties"]["title"] == {"type": "string"}
    assert found["properties"]["properties"] == {
        "type": "object",
        "additionalProperties": {"type": "string"},
    }


def test_a_strict_schema_is_closed_in_objects_inside_too(tool: Any) -> None:
    parameters = definition(tool, strict=True)["parameters"]

    assert parameters["additionalProperties"] is False
    assert parameters["$defs"]["Line"]["additionalProperties"] is False
    assert parameters["$defs"]["Order"]["additionalProperties"] is False
    tags = parameters["$defs"]["Order"]["properties"]["tags"]
    assert tags["additionalProperties"] == {"type": "integer"}


def test_a_tool_without_arguments_can_be_strict() -> None:
    def now() -> str:
        return "noon"

    assert definition(now, strict=True) == {
        "name": "now",
        "description": "",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        "strict": True,
    }


def test_what_a_host_says_of_a_tool_is_taken_and_not_changed(tool: Any) -> None:
    parameters: dict[str, Any] = {
        "title": "Order",
        "type": "object",
        "properties": {"order": {"type": "object", "title": "O", "properties": {}}},
        "items": [True],
    }
    before = repr(parameters)

    schema = Mirror(Bank(MemoryStore())).schema(parameters)
    found = definition(tool, description="Other.", parameters=schema, strict=True)

    assert repr(parameters) == before
    assert found["description"] == "Other."
    assert found["parameters"]["title"] == "Order"
    inside = found["parameters"]["properties"]["order"]["anyOf"][0]
    assert inside["additionalProperties"] is False


def test_examples_alone_are_a_description_and_surrogates_are_shown() -> None:
    def echo(text: str) -> str:
        return text

    found = definition(echo, input_examples=[{"text": "\ud83d"}])

    assert found["description"] == 'Examples:\n1. {"text":"\ufffd"}'


def test_an_example_that_is_no_json_is_refused(tool: Any) -> None:
    endless: dict[str, object] = {}
    endless["order"] = endless

    with pytest.raises(UnencodableValueError):
        definition(tool, input_examples=[endless])
