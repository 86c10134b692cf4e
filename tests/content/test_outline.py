import pytest

from coatcheck.content import Encoding, encode, index_outline, outline

SECRET = "never shown"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": SECRET, "b": 1}, "an object with the keys 'a', 'b'"),
        ({}, "an object"),
        ([], "a list of 0"),
        ([SECRET] * 3, "a list of 3"),
        ([{"a": 1}, 5, {"b": SECRET}], "a list of 3 with the keys 'a', 'b'"),
        (SECRET, "one text"),
        (None, "null"),
        (True, "true or false"),
        (7, "one number"),
        (7.5, "one number"),
        (b"x", "one bytes"),
    ],
)
def test_a_value_is_told_by_its_kind_and_keys(value: object, expected: str) -> None:
    assert outline(value) == expected


def test_the_length_of_a_list_can_be_known_from_elsewhere() -> None:
    assert outline([{"a": 1}], 12_000) == "a list of 12,000 with the keys 'a'"


def test_an_outline_is_bounded_however_many_and_long_the_keys_are() -> None:
    told = outline({f"{number}" * 1_000: SECRET for number in range(5_000)})

    assert len(told) < 800
    assert "more" in told
    assert SECRET not in told


def indexed(encoding: Encoding) -> str:
    encoding.whole()
    return index_outline(encoding.index, encoding.content_type)


def test_an_index_tells_rows_columns_lines_characters_or_bytes() -> None:
    assert indexed(encode("a,b\n1,2\n3,4\n5,6\n")) == (
        "3 rows with the columns 'a', 'b', 4 lines, 16 characters"
    )
    assert indexed(encode([1])) == "1 row, 1 line, 3 characters"
    assert indexed(encode(b"\xff")) == "1 byte of application/octet-stream"
