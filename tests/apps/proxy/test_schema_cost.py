"""A schema that makes endless work of a value is not held against it; all others are."""

from typing import Any

import pytest

from coatcheck.apps.proxy._schema_cost import SchemaCost

TREE = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
UNION = {
    "oneOf": [{"$ref": "#/$defs/and"}, {"type": "string"}],
    "$defs": {"and": {"properties": {"all": {"type": "array", "items": {"$ref": "#"}}}}},
}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"c": value}
    return value


def doubling(steps: int) -> dict[str, Any]:
    def twice(step: int) -> dict[str, Any]:
        return {"allOf": [{"$ref": f"#/$defs/a{step + 1}"}] * 2}

    steps_ = {f"a{step}": twice(step) for step in range(steps)}
    return {"properties": {"c": {"$ref": "#/$defs/a0"}}, "$defs": steps_ | {f"a{steps}": {}}}


@pytest.mark.parametrize("schema", [TREE, UNION, {}, {"properties": {"a": True}}, doubling(5)])
def test_schema_whose_work_grows_with_the_value_is_bearable(schema: dict[str, Any]) -> None:
    assert SchemaCost(schema).is_bearable(nested(60))


def test_schema_that_doubles_its_work_with_each_step_is_not() -> None:
    assert not SchemaCost(doubling(40)).is_bearable({"c": 1})


@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_schema_that_doubles_its_work_with_each_level_is_bearable_for_few_levels(word: str) -> None:
    cost = SchemaCost({"properties": {"c": {word: [{"$ref": "#"}, {"$ref": "#"}]}}})

    assert cost.is_bearable(nested(5))
    assert not cost.is_bearable(nested(40))


def test_schema_that_refers_to_itself_in_place_is_bearable() -> None:
    schema = {"allOf": [{"$ref": "#"}, {"$ref": "#/nowhere/0"}, {"$ref": "#/allOf/9"}, 5]}

    assert SchemaCost(schema).is_bearable({})
