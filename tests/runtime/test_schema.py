import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.runtime._schema import OutputSchema, output_schema

WITHOUT_EXTRA = """
import sys
sys.modules["jsonschema_rs"] = None
from coatcheck.runtime._schema import output_schema
try:
    output_schema({}, "it")
except ImportError as error:
    print(error)
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


def test_without_the_extra_a_schema_says_how_to_get_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA], capture_output=True, text=True, check=True
    )

    assert done.stdout == "steps with a schema need an extra: pip install 'coatcheck[agent]'\n"


@pytest.mark.parametrize(
    ("authored", "is_declared"),
    [
        ({"properties": {"error": {}}}, True),
        ({"items": {"properties": {"error": {}}}}, True),
        ({"properties": {"errors": {}}}, False),
        ({"items": True}, False),
        ({}, False),
        ("nonsense", False),
    ],
)
def test_a_schema_may_declare_errors_of_results_or_their_items(
    authored: Any, is_declared: bool
) -> None:
    assert OutputSchema(authored, "it").declares_error is is_declared


def test_a_step_without_a_schema_has_none() -> None:
    assert output_schema(None, "step result") is None


def test_objects_are_shown_closed_and_validated_as_they_were_written() -> None:
    schema = OutputSchema(
        {
            "properties": {
                "rows": {"type": "array", "items": {"properties": {"id": {}}}},
                "open": {"properties": {"x": {}}, "additionalProperties": True},
            }
        },
        "step result",
    )

    assert schema.shown == {
        "type": "object",
        "properties": {
            "rows": {
                "type": "array",
                "items": {"properties": {"id": {}}, "additionalProperties": False},
            },
            "open": {"properties": {"x": {}}, "additionalProperties": True},
        },
        "additionalProperties": False,
        "description": "step result",
    }
    assert schema.mistake({"more": 1, "rows": [{"id": 1, "more": 2}]}) is None


@pytest.mark.parametrize(
    "combined", [{"anyOf": [{"type": "string"}]}, {"enum": [1]}, {"const": 1}, {"type": "array"}]
)
def test_what_is_no_plain_object_is_not_made_one(combined: dict[str, Any]) -> None:
    assert OutputSchema(combined, "what").shown == {**combined, "description": "what"}


def test_references_of_a_schema_work_where_it_is_shown() -> None:
    schema = OutputSchema(
        {"$defs": {"Id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/$defs/Id"}}}, "it"
    )

    assert schema.parameters["$defs"] == {"Id": {"type": "integer"}}
    assert "$defs" not in schema.parameters["properties"]["result"]
    assert schema.mistake({"id": "x"}) == 'id: the value is not of type "integer"'
    assert schema.mistake({"id": 1}) is None


@pytest.mark.parametrize(
    ("keyword", "fits", "fails"),
    [
        ({"minimum": 3}, 3, 2),
        ({"pattern": "^a"}, "ab", "ba"),
        ({"enum": ["x"]}, "x", "y"),
        ({"oneOf": [{"type": "string"}, {"minLength": 2}]}, "a", "ab"),
        ({"additionalProperties": False}, {}, {"a": 1}),
        ({"items": {"type": "integer"}}, [1], ["a"]),
        ({"minItems": 1}, [1], []),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"b": 1}, {"a": 1}),
    ],
)
def test_the_whole_of_json_schema_is_held_to(
    keyword: dict[str, Any], fits: object, fails: object
) -> None:
    schema = OutputSchema(keyword, "it")

    assert schema.mistake(fits) is None
    assert schema.mistake(fails) is not None


def test_a_mistake_never_quotes_the_value_and_is_short() -> None:
    schema = OutputSchema({"properties": {"key": {"enum": [1]}}}, "it")

    mistake = schema.mistake({"key": "the-secret " * 1_000})

    assert mistake is not None
    assert "the-secret" not in mistake
    assert len(mistake) <= 500


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("{", "no JSON object"),
        ("true", "no JSON object"),
        ({"type": "thing"}, "type: the value is not valid"),
        ({"$ref": "http://127.0.0.1:9/x.json"}, "Retrieval is disabled"),
        ({"$schema": "https://example.com/own"}, "Unknown meta-schema"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why_and_takes_anything(wrong: Any, why: str) -> None:
    schema = OutputSchema(wrong, "it")

    assert why in str(schema.problem)
    assert schema.mistake(object()) is None
    assert schema.shown == {"type": "object", "description": "it"}


def test_a_schema_of_endless_depth_counts_as_none() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"items": deep}

    assert "levels deep" in str(OutputSchema(deep, "it").problem)


@pytest.mark.hypothesis
@given(authored=st.dictionaries(st.text(), JSON, max_size=4) | st.text(), value=JSON)
def test_no_schema_and_no_value_raises(authored: Any, value: object) -> None:
    schema = output_schema(authored, "it")

    assert schema is not None
    assert schema.parameters["required"] == ["result"]
    mistake = schema.mistake(value)
    assert mistake is None or len(mistake) <= 500
    assert schema.problem is None or schema.mistake(value) is None
