import pytest

from coatcheck.content import compile_jmespath, compile_jsonpath, misspelt

ORDERS = {
    "items": [{"id": number, "status": "paid", "buyer": {"city": "Lyon"}} for number in range(9)],
    "total": 9,
}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["stxtus"], "It has no key 'stxtus', but 'status'."),
        (["items", "stxtus", "citi"], "It has no keys 'stxtus', 'citi', but 'status', 'city'."),
        (["q"], "It has no key 'q', but 'items', 'total', 'id', 'status', 'buyer', 'city'."),
        (["items", "city", "total"], None),
        ([], None),
    ],
)
def test_what_is_nowhere_is_told_with_what_is_most_like_it(
    names: list[str], said: str | None
) -> None:
    assert misspelt(names, ORDERS) == said


@pytest.mark.parametrize("value", [None, 7, "a", [], [1, [2]], {}])
def test_a_value_without_keys_has_none_of_them(value: object) -> None:
    assert misspelt(["a"], value) == "It has no key 'a': no object is in it."


def test_of_a_large_value_only_the_first_part_is_looked_through() -> None:
    rows: list[object] = [{"id": number} for number in range(30_000)]

    assert misspelt(["idd"], rows) == "Its first 20,000 values have no key 'idd', but 'id'."
    assert misspelt(["late"], [*rows, {"late": 1}]) is not None
    assert misspelt(["late"], [{"late": 1}, *rows]) is None


def test_deep_nesting_takes_no_stack() -> None:
    deep: object = {"end": 1}
    for _ in range(5_000):
        deep = [deep]

    assert misspelt(["end"], deep) is None


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("$", ()),
        ("$.items[0]['a b']..id", ("items", "a b", "id")),
        (
            "$[?@.x == 'y' && !(@.n > $.least || match(@.t, 'k'))].id",
            ("x", "n", "least", "t", "id"),
        ),
        ("$[?count(@.a[*]) > 1, 'b', 2:3]", ("a", "b")),
    ],
)
def test_a_jsonpath_knows_the_keys_that_it_asks_for(
    expression: str, names: tuple[str, ...]
) -> None:
    assert compile_jsonpath(expression).names == names


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("@", ()),
        ("items[?status == 'id'].\"a b\" | [0]", ("items", "a b", "status")),
        ("[].{id: id, cost: price} | [?cost > `1`]", ("id", "price")),
        ("sort_by(@, &price)[-1].[name, tag]", ("price", "name", "tag")),
        ("a && !b || c", ("a", "b", "c")),
        ("[:2].{where: at.city}", ("at", "city")),
    ],
)
def test_a_jmespath_knows_the_keys_that_it_asks_for_and_does_not_make(
    expression: str, names: tuple[str, ...]
) -> None:
    assert compile_jmespath(expression).names == names
