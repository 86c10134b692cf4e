"""Ids: UUIDs of the right version, unguessable, and always as many tokens."""

import uuid
from collections.abc import Callable
from importlib import import_module

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.bank._ids import keyed_id, random_id
from coatcheck.records import is_id

SECRET = bytes(range(32))


@given(st.binary(max_size=64))
def test_an_id_is_a_uuid_in_decimal_digits(text: bytes) -> None:
    for id_, version in ((random_id(), 4), (keyed_id(SECRET, text), 8)):
        parsed = uuid.UUID(id_)

        assert is_id(id_)
        assert str(parsed) == id_
        assert (int(id_[14]), parsed.variant) == (version, uuid.RFC_4122)
        assert id_.replace("-", "").isdecimal()


def test_an_id_is_17_tokens_whichever_it_is() -> None:
    count: Callable[[str], int] = import_module("rs_bpe").openai.o200k_base().count

    assert {count(random_id()) for _ in range(1_000)} == {17}
    assert {count(keyed_id(SECRET, bytes([at]))) for at in range(256)} == {17}


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_an_id_is_that_of_its_text_and_of_no_other(text: bytes, other: bytes) -> None:
    assert keyed_id(SECRET, text) == keyed_id(SECRET, text)
    assert (keyed_id(SECRET, text) == keyed_id(SECRET, other)) == (text == other)


def test_who_has_another_secret_gets_other_ids() -> None:
    assert keyed_id(SECRET, b"a call") != keyed_id(bytes(32), b"a call")


def test_random_ids_differ_in_each_of_their_digits() -> None:
    ids = [random_id() for _ in range(2_000)]

    assert len(set(ids)) == len(ids)
    for place, digits in enumerate(zip(*ids, strict=True)):
        expected = {14: set("4"), 19: set("89")}.get(place, set("0123456789"))
        assert set(digits) == (expected if digits[0] != "-" else {"-"})
