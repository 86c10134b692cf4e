"""How a pointer is let into the JSON schema of a tool, and what else stays as it is."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.mirror._schema import POINTER_SCHEMA, schema_at, widened

POINTER = "art:00000000-0000-4000-8000-000000000005"
DRAFTS = [
    None,
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


def accepts(schema: dict[str, Any], instance: object) -> bool:
    return jsonschema_rs.validator_for(schema, offline=True).is_valid(instance)


@pytest.mark.parametrize("draft", DRAFTS)
def test_what_a_pointer_is_stands_once_and_parameters_refer_to_it(draft: str | None) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}, "description": "which"},
            "row": {"$ref": "#/$defs/row"},
            "either": {"anyOf": [{"type": "array"}, {"type": "null"}], "default": None},
            "color": {"enum": ["red", "blue"]},
            "n": {"type": "integer"},
        },
        "required": ["ids"],
        "additionalProperties": False,
        "$defs": {"row": {"type": "object", "required": ["id"]}},
    }
    if draft is not None:
        schema["$schema"] = draft
    before = repr(schema)

    wider = widened(schema, in_defs=True)

    assert repr(schema) == before
    assert wider["type"] == "object"
    assert wider["$defs"] == {**schema["$defs"], "pointer": POINTER_SCHEMA}
    reference = {"$ref": "#/$defs/pointer"}
    assert wider["properties"] == {
        "ids": {
            "description": "which",
            "anyOf": [{"type": "array", "items": {"type": "integer"}}, reference],
        },
        "row": {"anyOf": [{"$ref": "#/$defs/row"}, reference]},
        "either": {"anyOf": [{"type": "array"}, {"type": "null"}, reference], "default": None},
        "color": {"enum": ["red", "blue"]},
        "n": {"type": "integer"},
    }
    assert jsonschema_rs.meta.is_valid(wider)
    assert accepts(wider, {"ids": POINTER, "row": POINTER, "either": POINTER, "color": "red"})
    assert accepts(wider, {"ids": [1], "row": {"id": 1}, "either": None, "n": 2})
    wrongs: list[dict[str, Any]] = [
        {"ids": "art:deco posters"},
        {"ids": ["x"]},
        {"ids": [1], "row": {}},
        {"ids": [1], "color": POINTER},
        {"ids": [1], "more": 1},
        {"n": 1},
    ]
    for wrong in wrongs:
        assert not accepts(wider, wrong)


def test_a_definition_that_has_the_name_already_keeps_it() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/pointer"}, "b": {"type": "array"}},
        "$defs": {"pointer": {"type": "integer"}, "pointer2": {"type": "null"}},
    }

    wider = widened(schema, in_defs=True)

    assert wider["$defs"] == {**schema["$defs"], "pointer3": POINTER_SCHEMA}
    assert wider["properties"]["a"] == {"$ref": "#/$defs/pointer"}
    assert wider["properties"]["b"]["anyOf"][1] == {"$ref": "#/$defs/pointer3"}


@pytest.mark.parametrize("odd", [None, 5, [], "x"])
def test_definitions_that_are_none_are_left_alone(odd: object) -> None:
    schema = {"properties": {"b": {"type": "array"}}, "$defs": odd}

    wider = widened(schema, in_defs=True)

    assert wider["$defs"] == odd
    assert wider["properties"]["b"]["anyOf"][1] == POINTER_SCHEMA


def test_a_schema_without_structures_says_nothing_of_pointers() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    assert widened(schema, in_defs=True) == schema


@pytest.mark.parametrize("in_defs", [True, False])
@pytest.mark.parametrize(
    ("name", "step"), [("where", "where"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("ä b", "%C3%A4%20b")]
)
def test_references_into_a_parameter_go_where_it_stands_now(
    in_defs: bool, name: str, step: str
) -> None:
    schema: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            name: {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "inner": {"$ref": f"#/properties/{step}"},
                },
            },
            "same": {"$ref": f"#/properties/{step}"},
            "ids": {"type": "array", "items": {"$ref": f"#/properties/{step}/properties/id"}},
        },
    }

    wider = widened(schema, in_defs=in_defs)

    assert accepts(wider, {name: {"id": 1, "inner": {"id": 2}}, "same": {"id": 3}, "ids": [4]})
    assert accepts(wider, {name: POINTER, "same": POINTER, "ids": POINTER})
    assert not accepts(wider, {name: {"inner": {"id": "x"}}})
    assert not accepts(wider, {"same": {"id": "x"}})
    assert not accepts(wider, {"ids": ["x"]})


def test_references_of_a_part_with_an_address_of_its_own_stay() -> None:
    part = {
        "$id": "https://example.com/part",
        "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}},
    }
    schema = {"properties": {"a": {"type": "array"}, "part": {"allOf": [part]}}}

    wider = widened(schema)

    assert wider["properties"]["part"]["anyOf"][0] == {"allOf": [part]}


def test_texts_that_only_look_like_references_stay() -> None:
    schema = {
        "properties": {
            "a": {"type": "array", "default": [{"$ref": "#/properties/a"}]},
            "b": {"const": {"$ref": "#/properties/a"}},
            "$ref": {"type": "string"},
        },
        "examples": [{"$ref": "#/properties/a"}],
    }

    wider = widened(schema)

    assert wider["properties"]["a"]["default"] == [{"$ref": "#/properties/a"}]
    assert wider["properties"]["b"] == {"const": {"$ref": "#/properties/a"}}
    assert wider["properties"]["$ref"] == {"type": "string"}
    assert wider["examples"] == [{"$ref": "#/properties/a"}]


def test_a_schema_that_is_open_to_pointers_already_stays_as_it_is() -> None:
    schema = {
        "properties": {
            "where": {"type": "object", "properties": {"ids": {"type": "array"}}},
            "ids": {"type": "array", "items": {"$ref": "#/properties/where/properties/ids"}},
            "row": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            "same": {"$ref": "#/properties/where"},
        }
    }

    once = widened(schema, in_defs=True)

    assert widened(once, in_defs=True) == once
    assert widened(once) == once
    assert widened(widened(schema), in_defs=True) == widened(schema)
    assert schema_at(once, ("same", "ids"), once) == {"type": "array"}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("#", "found"),
        ("#/anyOf/1/properties/x", "by number"),
        ("#/anyOf/7", None),
        ("#/anyOf/x", None),
        ("#/anyOf/١", None),
        ("#nowhere", None),
        ("elsewhere#/anyOf", None),
    ],
)
def test_references_lead_to_the_root_and_into_lists(reference: str, expected: object) -> None:
    schema = {
        "properties": {"a": {"$ref": reference}, "deep": {"title": "found"}},
        "anyOf": [{}, {"properties": {"x": {"properties": {"deep": {"title": "by number"}}}}}],
    }

    found: Any = schema_at(schema, ("a", "deep"), schema)

    assert found.get("title") == expected


def test_a_schema_nested_deeper_than_python_recurses_is_widened() -> None:
    node: dict[str, Any] = {"type": "integer"}
    for _ in range(5_000):
        node = {"type": "array", "items": node}

    wider = widened({"properties": {"deep": node}}, in_defs=True)

    assert wider["properties"]["deep"]["anyOf"][1] == {"$ref": "#/$defs/pointer"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("pair", 0), {"type": "string"}),
        (("pair", 1), {"type": "integer"}),
        (("pair", 5), {"type": "null"}),
        (("map", "any key"), {"type": "number"}),
        (("map", "known"), {"type": "boolean"}),
        (("ref", 3), {"type": "string"}),
    ],
)
def test_the_schema_of_a_place_is_found_in_tuples_maps_and_escaped_references(
    path: tuple[object, ...], expected: object
) -> None:
    schema = {
        "properties": {
            "pair": {
                "prefixItems": [{"type": "string"}, {"type": "integer"}],
                "items": {"type": "null"},
            },
            "map": {
                "properties": {"known": {"type": "boolean"}},
                "additionalProperties": {"type": "number"},
            },
            "ref": {"$ref": "#/$defs/a~1b%20c"},
        },
        "$defs": {"a/b c": {"items": {"type": "string"}}},
    }

    assert schema_at(schema, path, schema) == expected


NAMES = st.sampled_from(["a", "b", "c"])
SCALAR_NODES = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "string"},
        {"enum": ["x", 1, None]},
        {"type": ["string", "null"]},
        True,
        {},
    ]
)
REFERENCES = st.sampled_from(
    [
        "#",
        "#/$defs/row",
        "#/properties/a",
        "#/properties/b",
        "#/properties/a/items",
        "#/properties/b/properties/a",
    ]
).map(lambda reference: {"$ref": reference})
NODES: st.SearchStrategy[Any] = st.recursive(
    SCALAR_NODES | REFERENCES,
    lambda inner: st.one_of(
        inner.map(lambda node: {"type": "array", "items": node}),
        st.dictionaries(NAMES, inner, max_size=2).map(
            lambda nodes: {"type": "object", "properties": nodes}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda nodes: {"anyOf": nodes}),
        st.lists(inner, min_size=1, max_size=2).map(lambda nodes: {"oneOf": nodes}),
        inner.map(lambda node: {"type": "array", "not": {"items": node}}),
        inner.map(lambda node: {"type": "object", "additionalProperties": node}),
    ),
    max_leaves=4,
)
INSTANCES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([0, 1, "x", "y", None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner),
    max_leaves=5,
)


@given(
    nodes=st.dictionaries(NAMES, NODES, min_size=1),
    is_closed=st.booleans(),
    in_defs=st.booleans(),
    draft=st.sampled_from([None, *DRAFTS[2:]]),
    instances=st.lists(st.dictionaries(NAMES, INSTANCES), min_size=5, max_size=10),
)
def test_but_for_pointers_a_widened_schema_accepts_what_the_tool_s_own_does(
    nodes: dict[str, Any],
    is_closed: bool,
    in_defs: bool,
    draft: str | None,
    instances: list[dict[str, Any]],
) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "array"}, "b": {"type": "object", "properties": {}}, **nodes},
        "$defs": {"row": {"type": "object", "required": ["a"]}},
    }
    if is_closed:
        schema["additionalProperties"] = False
    if draft is not None:
        schema["$schema"] = draft
    try:
        validator = jsonschema_rs.validator_for(schema, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError):  # a reference leads nowhere
        return

    wider = jsonschema_rs.validator_for(widened(schema, in_defs=in_defs), offline=True)

    for instance in instances:
        assert wider.is_valid(instance) == validator.is_valid(instance)
