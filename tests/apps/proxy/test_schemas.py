"""How upstream tools are listed, and what resolved arguments are held to."""

import json
from typing import Any

import jsonschema_rs
import pytest

from coatcheck import Bank, Mirror
from coatcheck.apps.proxy._schemas import META_OUTPUT, ToolSchemas
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import MemoryStore

SECRET = "payload text"


@pytest.fixture
def schemas() -> ToolSchemas:
    return ToolSchemas(Mirror(Bank(MemoryStore())))


def tool(schema: object, **facts: object) -> dict[str, object]:
    return {"name": "t", "inputSchema": schema, **facts}


def taking(properties: dict[str, Any], **words: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **words}


def test_a_tool_is_listed_open_to_pointers_and_without_its_output_schema(
    schemas: ToolSchemas,
) -> None:
    output = {"type": "object", "properties": {"result": {"type": "array"}}}
    given = tool(
        taking({"ids": {"type": "array"}}),
        title="T",
        outputSchema=output,
        annotations={"readOnlyHint": True},
        _meta={"theirs": 1},
    )
    before = json.dumps(given)

    listed = schemas.listed("up", given, keeps_output=False)

    assert json.dumps(given) == before
    assert listed["_meta"] == {"theirs": 1, META_OUTPUT: output}
    assert "outputSchema" not in listed
    assert listed["title"] == "T"
    assert listed["annotations"] == {"readOnlyHint": True}
    schema: Any = listed["inputSchema"]
    assert schema["properties"]["ids"]["anyOf"][1] == {"$ref": "#/$defs/pointer"}
    assert jsonschema_rs.meta.is_valid(schema)
    assert schemas.of("up", "t") is given["inputSchema"]
    assert schemas.of("other", "t") is None


def test_a_tool_whose_results_are_never_replaced_keeps_its_output_schema(
    schemas: ToolSchemas,
) -> None:
    listed = schemas.listed("up", tool(taking({}), outputSchema={}), keeps_output=True)

    assert listed["outputSchema"] == {}
    assert "_meta" not in listed


@pytest.mark.parametrize("odd", [None, [], "x", 5])
def test_a_tool_of_any_shape_is_listed(schemas: ToolSchemas, odd: object) -> None:
    listed = schemas.listed("up", tool(odd, outputSchema=odd, _meta=odd), keeps_output=False)

    assert listed == {"name": "t", "inputSchema": odd, "_meta": {META_OUTPUT: odd}}
    schemas.check("up", "t", {"a": 1})


def test_the_same_list_gives_the_same_bytes(schemas: ToolSchemas) -> None:
    given = tool(taking({"b": {"type": "array"}, "a": {"type": "object"}}), outputSchema={"x": 1})

    texts = {
        json.dumps(each.listed("up", given, keeps_output=False))
        for each in (schemas, schemas, ToolSchemas(Mirror(Bank(MemoryStore()))))
    }

    assert len(texts) == 1


ROWS: dict[str, Any] = taking(
    {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "kind": {"enum": ["a", "b"]}},
                "required": ["id"],
                "additionalProperties": False,
                "propertyNames": {"maxLength": 20},
            },
        },
        "nothing": {"type": "object", "properties": {"x": False}},
        "const": {"const": 5},
        "short": {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$"},
    },
    required=["rows"],
)


@pytest.mark.parametrize(
    ("arguments", "place", "why"),
    [
        ({"rows": SECRET}, "argument 'rows' ", 'the value is not of type "array"'),
        ({"rows": [{"id": 1}, {"id": SECRET}]}, "argument 'rows'[1]['id'] ", '"integer"'),
        ({"rows": [{"kind": "a"}]}, "argument 'rows'[0] ", '"id" is a required property'),
        ({"rows": [{"id": 1, SECRET: 1}]}, "argument 'rows'[0] ", "it has properties that it may"),
        ({"rows": [{"id": 1, "kind": SECRET}]}, "['kind'] ", 'the value is not one of "a" or "b"'),
        ({"rows": [], "nothing": {"x": SECRET}}, "argument 'nothing'", "may"),
        ({"rows": [], "const": SECRET}, "argument 'const' ", "5"),
        ({"rows": [], "short": SECRET}, "argument 'short' ", "the value"),
        ({}, "what the arguments hold ", '"rows" is a required property'),
    ],
)
def test_what_does_not_fit_is_told_by_place_and_rule_and_never_quoted(
    schemas: ToolSchemas, arguments: dict[str, Any], place: str, why: str
) -> None:
    schemas.listed("up", tool(ROWS), keeps_output=False)

    with pytest.raises(InvalidArgumentError) as caught:
        schemas.check("up", "t", arguments)

    assert not schemas.fits("up", "t", arguments)
    assert place in str(caught.value)
    assert why in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_message_is_short_however_deep_the_place_and_long_the_rule(schemas: ToolSchemas) -> None:
    node: dict[str, Any] = {"enum": [f"value {number}" for number in range(1_000)]}
    value: object = SECRET
    for _ in range(50):
        node, value = taking({"a" * 200: node}), {"a" * 200: value}
    schemas.listed("up", tool(node), keeps_output=False)

    with pytest.raises(InvalidArgumentError) as caught:
        schemas.check("up", "t", value)  # type: ignore[arg-type]  # a dict, as the loop ran

    assert len(str(caught.value)) < 1_500


def test_what_fits_passes(schemas: ToolSchemas) -> None:
    schemas.listed("up", tool(ROWS), keeps_output=False)

    schemas.check("up", "t", {"rows": [{"id": 1, "kind": "a"}], "short": "abc", "more": None})

    assert schemas.fits("up", "t", {"rows": []})


@pytest.mark.parametrize(
    "schema",
    [
        taking({"a": {"type": "nonsense"}}),
        taking({"a": {"$ref": "http://127.0.0.1:9/remote.json"}}),
        taking({"a": {"$ref": "file:///etc/passwd"}}),
        taking({"a": {"$ref": "#/no/where"}}),
        taking({"a": {"pattern": "("}}),
        {"$schema": "https://example.com/own", "properties": {"a": {"type": "integer"}}},
    ],
)
def test_a_schema_that_is_none_or_leads_away_judges_nothing(
    schemas: ToolSchemas, schema: dict[str, Any]
) -> None:
    schemas.listed("up", tool(schema), keeps_output=False)

    schemas.check("up", "t", {"a": "x"})

    assert schemas.fits("up", "t", {"a": "x"})


def test_a_pattern_on_which_an_engine_may_search_for_ever_judges_nothing(
    schemas: ToolSchemas,
) -> None:
    rows = {"type": "array", "items": {"pattern": r"^(a|a)*(?!c)\1$"}}
    schemas.listed("up", tool(taking({"rows": rows})), keeps_output=False)

    assert schemas.fits("up", "t", {"rows": ["a" * 5_000 + "!"] * 10_000})


def test_other_patterns_take_time_in_proportion(schemas: ToolSchemas) -> None:
    schemas.listed("up", tool(taking({"a": {"pattern": "^(a+)+$"}})), keeps_output=False)

    assert not schemas.fits("up", "t", {"a": "a" * 100_000 + "!"})
    assert schemas.fits("up", "t", {"a": "a" * 100_000})


def test_what_is_listed_anew_counts(schemas: ToolSchemas) -> None:
    schemas.listed("up", tool(taking({"a": {"type": "integer"}})), keeps_output=False)
    assert not schemas.fits("up", "t", {"a": "x"})

    schemas.listed("up", tool(taking({"a": {"type": "string"}})), keeps_output=False)

    assert schemas.fits("up", "t", {"a": "x"})
