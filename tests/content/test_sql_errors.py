"""What the engine says, without values and file names."""

import pytest

from coatcheck.content import EngineError
from coatcheck.content.sql import engine_refusal
from coatcheck.errors import CoatcheckError, DeadlineError, InvalidQueryError


def refusal(kind: str, text: str = "") -> CoatcheckError:
    error = EngineError(kind, text)
    return engine_refusal(error, seconds=10, most_bytes=128 * 2**20, columns=["id", "price"])


def test_a_statement_that_took_too_long_is_a_deadline() -> None:
    found = refusal("deadline")

    assert isinstance(found, DeadlineError)
    assert str(found) == "The SQL query was stopped after 10 s."
    assert "Filter" in found.hint


def test_too_little_memory_is_a_query_that_asks_for_too_much() -> None:
    assert "more memory" in str(refusal("memory"))


def test_a_process_that_ended_is_not_told_as_a_query_that_asks_for_too_much() -> None:
    found = refusal("ended")

    assert "the process that runs SQL ended" in str(found)
    assert "memory" not in str(found) + found.hint
    assert found.hint == "Ask again."


def test_a_table_that_is_not_there_is_told_without_those_of_the_engine() -> None:
    text = (
        'Catalog Error: Table with name x does not exist!\nDid you mean "duckdb_views"?\n\nLINE 1'
    )

    found = refusal("CatalogException", text)

    assert str(found) == "Read as SQL: Table with name x does not exist."
    assert "duckdb" not in found.hint


def test_too_large_a_result_says_how_large_it_may_be() -> None:
    found = refusal("size")

    assert str(found) == "Read as SQL: its result is larger than 128 MiB."
    assert "LIMIT" in found.hint


@pytest.mark.parametrize(
    "text",
    [
        'Binder Error: Referenced column "prise" not found in FROM clause!\nCandidates: "x"',
        'Binder Error: Table "data" does not have a column named "prise"\n\nLINE 1: SELECT',
    ],
)
def test_a_column_that_is_not_there_is_told_with_those_that_are(text: str) -> None:
    found = refusal("BinderException", text)

    assert str(found) == "Read as SQL: there is no column 'prise'."
    assert found.hint == "Its columns are id, price. A text takes single quotes."


def test_what_is_wrong_with_a_statement_is_said_in_the_engines_words() -> None:
    text = (
        "Binder Error: No function matches the given name and argument types 'sum(VARCHAR)'. You "
        "might need to add explicit type casts.\n\tCandidate functions:\n\tsum(arg DECIMAL)\n\n"
        "LINE 1: SELECT sum(name)\n               ^"
    )

    found = refusal("BinderException", text)

    assert str(found).endswith("'sum(VARCHAR)'. You might need to add explicit type casts.")
    assert "CAST" in found.hint


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("ConversionException", "Conversion Error: Could not convert string 'SECRET' to INT32", ""),
        ("InvalidInputException", 'Invalid Input Error: Could not parse "SECRET" as a date', ""),
        ("InvalidInputException", "Invalid Input Error: Failed to cast value: SECRET", ""),
        ("OutOfRangeException", "Out of Range Error: Overflow in sum (SECRET + SECRET)!", ""),
        ("InvalidInputException", "Invalid Input Error: a\nSECRET", ""),
        ("IOException", 'IO Error: Cannot open file "/SECRET/x"', ""),
        ("HTTPException", "'SECRET'", "it failed"),
    ],
)
def test_values_and_file_names_are_cut(kind: str, text: str, said: str) -> None:
    found = refusal(kind, text)

    assert isinstance(found, InvalidQueryError)
    assert "SECRET" not in str(found) + found.hint
    assert said in str(found)


def test_a_long_message_is_cut() -> None:
    assert len(str(refusal("CatalogException", "Catalog Error: " + "x" * 5_000))) < 350
