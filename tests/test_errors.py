import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import errors
from coatcheck.errors import (
    BinaryPayloadError,
    CoatcheckError,
    DamagedPayloadError,
    DamagedRecordError,
    ExpiredPointerError,
    InvalidArgumentError,
    InvalidPointerError,
    ModelError,
    NoPlanError,
    PointerError,
    QuotaError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UnencodableValueError,
    UnknownPointerError,
    shown,
)

LONG = "x" * 4_000
EXAMPLES: list[CoatcheckError] = [
    InvalidPointerError(LONG),
    UnknownPointerError(LONG),
    ExpiredPointerError(LONG),
    ExpiredPointerError(LONG, name=LONG, size_bytes=10**12, tool=LONG, glimpse=LONG),
    QuotaError(10**12, 10**11, "scope"),
    InvalidArgumentError("offset must be 0 or more", "Give 0 or more."),
    BinaryPayloadError(LONG, "image/png", 12_345, "640 x 480"),
    UnencodableValueError("it contains itself", endless=True),
    StoreUnavailableError("No space left on device"),
    StoreFormatError("not format 1"),
    DamagedRecordError(LONG),
    DamagedPayloadError(LONG),
    ModelError(LONG, LONG),
    NoPlanError(LONG),
]


@pytest.mark.parametrize(
    ("kind", "built_in"),
    [
        (InvalidPointerError, ValueError),
        (UnknownPointerError, LookupError),
        (ExpiredPointerError, LookupError),
        (QuotaError, ValueError),
        (InvalidArgumentError, ValueError),
        (BinaryPayloadError, TypeError),
        (UnencodableValueError, ValueError),
        (StoreUnavailableError, OSError),
        (StoreFormatError, ValueError),
        (DamagedRecordError, StoreFormatError),
        (DamagedPayloadError, ValueError),
    ],
)
def test_each_error_is_also_what_a_caller_would_have_guessed(
    kind: type[CoatcheckError], built_in: type[Exception]
) -> None:
    assert issubclass(kind, built_in)
    assert issubclass(kind, CoatcheckError)


def test_the_tree_in_the_docstring_names_every_error() -> None:
    named = errors.__doc__ or ""
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]

    assert kinds
    assert [kind.__name__ for kind in kinds if issubclass(kind, Exception)] == [
        kind.__name__ for kind in kinds if kind.__name__ in named and issubclass(kind, Exception)
    ]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_messages_and_hints_are_short_whatever_was_sent(error: CoatcheckError) -> None:
    assert 0 < len(str(error)) < 250
    assert 0 < len(error.hint) < 250
    assert LONG[:200] not in str(error)
    assert error.code


def test_facts_are_attributes() -> None:
    assert InvalidPointerError("x").text == "x"
    assert UnknownPointerError("art:x", ["art:y"]).nearest == ("art:y",)
    assert ExpiredPointerError("art:x").pointer == "art:x"
    assert DamagedPayloadError("art:x").pointer == "art:x"
    assert DamagedRecordError("art:x").pointer == "art:x"
    assert DamagedRecordError("art:x").reason == "a record is damaged"
    assert UnencodableValueError("r").endless is False
    assert StoreUnavailableError("r").reason == "r"
    assert StoreFormatError("r").reason == "r"
    binary = BinaryPayloadError("art:x", "image/png", 12_345)
    assert (binary.pointer, binary.content_type, binary.size_bytes, binary.glimpse) == (
        "art:x",
        "image/png",
        12_345,
        "",
    )


def test_the_nearest_pointers_stand_in_the_hint() -> None:
    assert "art:y, art:z" in UnknownPointerError("art:x", ["art:y", "art:z"]).hint
    assert "Nearest" not in UnknownPointerError("art:x").hint


def test_a_binary_payload_is_named_by_type_and_size_and_glimpse() -> None:
    glimpse = "image/png, 12,345 bytes, 640 x 480"

    assert f"({glimpse})" in str(BinaryPayloadError("art:x", "image/png", 12_345, glimpse))
    assert "(image/png: PNG, 12 bytes)" in str(
        BinaryPayloadError("art:x", "image/png", 12, "PNG, 12 bytes")
    )
    assert "(image/png, 12,345 bytes)" in str(BinaryPayloadError("art:x", "image/png", 12_345))


def test_text_that_is_not_utf_8_is_told_the_remedy() -> None:
    assert "not UTF-8" in BinaryPayloadError("art:x", "text/plain; charset=latin-1", 5).hint
    assert "not UTF-8" not in BinaryPayloadError("art:x", "image/png", 5).hint


def test_bytes_of_no_type_are_told_with_how_text_is_banked_to_be_read() -> None:
    assert "content type of text" in BinaryPayloadError("a", "application/octet-stream", 5).hint
    assert "content type of text" not in BinaryPayloadError("a", "image/png", 5).hint


def test_unknown_expired_and_outage_have_three_codes() -> None:
    codes = {UnknownPointerError.code, ExpiredPointerError.code, StoreUnavailableError.code}

    assert codes == {"unknown-pointer", "expired", "store-unavailable"}


@pytest.mark.parametrize(("chars", "is_whole"), [(80, True), (81, False)])
def test_quoted_text_is_whole_up_to_80_characters(chars: int, is_whole: bool) -> None:
    assert (shown("x" * chars) == repr("x" * chars)) is is_whole


def test_what_is_no_text_is_quoted_as_python_shows_it() -> None:
    assert shown(-1) == "-1"
    assert shown([1] * 100).endswith("… (300)")


def test_families_can_be_caught_together() -> None:
    assert issubclass(UnknownPointerError, PointerError)
    assert issubclass(DamagedPayloadError, StoreError)


def _nested(depth: int) -> object:
    value: object = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


class _Rude(str):
    __slots__ = ()

    def __repr__(self) -> str:
        raise SystemExit

    def __len__(self) -> int:
        raise RuntimeError

    def __getitem__(self, key: object) -> str:
        raise RuntimeError


class _RudeObject:
    def __repr__(self) -> str:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (10**5_000, "an int of 16,610 bits"),
        (-(10**5_000), "an int of 16,610 bits"),
        ([10**5_000], "a list of 1"),
        (_nested(100_000), "a dict of 1"),
        ([0] * 1_000_000, "a list of 1,000,000"),
        ([[["x" * 5_000]]], "a list of 1"),
        (b"x" * 5_000, "a bytes of 5,000"),
        ({1, 2}, "a set of 2"),
        (_RudeObject(), "a _RudeObject"),
        (_Rude("x"), "'x'"),
        ([_Rude("x")], "a list of 1"),
        (object(), "an object"),
        ({"a": (1, None, 2.5, True)}, "{'a': (1, None, 2.5, True)}"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_shown_costs_little_and_never_raises(value: object, said: str) -> None:
    assert shown(value) == said


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_is_shown_is_short(value: object) -> None:
    assert 0 < len(shown(value)) < 900
