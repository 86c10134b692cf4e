from coatcheck.content._sql_cells import plain


def test_a_value_of_an_unknown_class_is_text() -> None:
    class Other:
        def __str__(self) -> str:
            return "other"

    assert plain({1: [Other(), None], "b": (1, b"\x00")}) == {
        "1": ["other", None],
        "b": [1, "AA=="],
    }
