import json
import string
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.errors import InvalidPointerError
from coatcheck.records import (
    Artifact,
    Envelope,
    Glimpse,
    Kind,
    Limits,
    Pointer,
    is_id,
    is_pointer,
    read_back,
)

ID = "00000000-0000-4000-8000-000000000005"
DIGITS = ID.replace("-", "")

prefixes = st.from_regex(r"[a-z][a-z0-9]{1,15}", fullmatch=True).filter(
    lambda prefix: prefix not in {"art", "ah"}
)


def an_artifact(**changes: object) -> Artifact:
    artifact = Artifact(
        pointer=f"art:{ID}",
        id=ID,
        name=None,
        label=None,
        kind="other",
        content_type="text/plain",
        size_bytes=98_200,
        length_chars=98_200,
        preview="head",
        shown_preview="head … (98,196 more characters)",
        glimpse=Glimpse("3 lines", {"lines": 3}),
        stored_at=datetime(2026, 11, 30, tzinfo=UTC),
        expires_at=None,
        digest="xxh3:" + "0" * 32,
        source=None,
        tool=None,
        run=None,
    )
    return replace(artifact, **changes)  # type: ignore[arg-type]


@given(st.uuids(), st.just("art") | prefixes)
def test_parse_reads_what_str_prints(uuid: object, prefix: str) -> None:
    pointer = Pointer(str(uuid), prefix)

    assert Pointer.parse(str(pointer)) == pointer
    assert is_pointer(str(pointer))
    assert is_pointer(pointer)


@given(
    st.text(alphabet=string.hexdigits + "art:ps-#/ ", max_size=60)
    | st.from_regex(r"[a-z:]{0,5}[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{11,13}")
)
def test_parse_accepts_only_what_str_prints(text: str) -> None:
    try:
        pointer = Pointer.parse(text)
    except InvalidPointerError:
        assert not is_pointer(text)
    else:
        assert str(pointer) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "art:",
        "art:abc",
        "art:deco posters",
        "art:does-not-exist",
        "plan-b",
        "ps-1",
        f"ART:{ID}",
        f"art:{ID}".upper(),
        f"art:{ID}\n",
        f" art:{ID}",
        f"art:{ID}x",
        f"art:{ID[:-1]}",
        f"art:{ID[:-1]}٥",  # a digit, though not an ASCII one
        f"art:{DIGITS}",
        f"art-{DIGITS}",
        f"ah-{DIGITS}",
        f"a-{DIGITS}",
        f"ps-{ID}",
        f"1ps-{DIGITS}",
        f"{'p' * 17}-{DIGITS}",
        f"art:{ID}#",
        f"art:{ID}#id",
        ID,
        "x" * 4_000,
    ],
)
def test_text_of_any_other_form_is_no_pointer(text: str) -> None:
    assert not is_pointer(text)
    with pytest.raises(InvalidPointerError) as caught:
        Pointer.parse(text)

    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("selector", ["", "L10-", "L-10", "rows=2", "the first"])
def test_a_pointer_with_no_selector_behind_it_says_which_there_are(selector: str) -> None:
    with pytest.raises(InvalidPointerError) as caught:
        Pointer.parse(f"art:{ID}#{selector}")

    assert str(caught.value) == f"'#{selector}' is no selector."
    assert "#line=9, (from 0, to the end)" in caught.value.hint
    assert Pointer.parse(f"art:{ID}#line=9,").selector == "line=9,"


@pytest.mark.parametrize(
    "text", [f"art:{ID}", f"ps-{DIGITS}", f"plan-{DIGITS}", f"{'p' * 16}-{DIGITS}"]
)
def test_each_form_of_pointer_names_the_same_id(text: str) -> None:
    assert Pointer.parse(text).id == ID
    assert is_pointer(text)


@pytest.mark.parametrize("value", [None, 123, b"art:x", [f"art:{ID}"], {"art": ID}])
def test_what_is_no_text_is_no_pointer(value: object) -> None:
    assert not is_pointer(value)


def test_only_a_lower_case_uuid_is_an_id() -> None:
    assert is_id(ID)
    assert not is_id(ID.replace("0", "A"))
    assert not is_id(DIGITS)
    assert not is_id(f"{ID}\n")


@pytest.mark.parametrize("prefix", ["a", "A1", "1a", "art", "ah", "p-s", "p" * 17, ""])
def test_a_kind_refuses_a_prefix_outside_its_rule(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix of a kind"):
        Kind("product set", prefix)


def test_a_kind_takes_prefixes_of_2_to_16_characters_or_none() -> None:
    assert Kind("product set", "ps").prefix == "ps"
    assert Kind("product set", "p" * 16).prefix == "p" * 16
    assert Kind("report").prefix is None


def test_a_kind_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        Kind("")


@pytest.mark.parametrize(
    "name",
    [
        *("inline_bytes", "page_chars", "page_cap_chars", "page_tokens"),
        *("turn_bytes", "scope_bytes", "store_bytes"),
    ],
)
def test_limits_that_leave_room_for_something_start_at_1(name: str) -> None:
    assert getattr(Limits(**{name: 1}), name) == 1  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"{name} must be 1 or more"):
        Limits(**{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["preview_chars", "banked_preview_chars", "glimpse_tokens", "cache_bytes"]
)
def test_limits_that_can_be_switched_off_start_at_0(name: str) -> None:
    assert getattr(Limits(**{name: 0}), name) == 0  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"{name} must be 0 or more"):
        Limits(**{name: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1.5, "5", True, None])
def test_limits_are_whole_numbers(value: object) -> None:
    with pytest.raises(TypeError, match="inline_bytes must be a whole number"):
        Limits(inline_bytes=value)  # type: ignore[arg-type]


def test_one_name_is_no_set_of_names() -> None:
    with pytest.raises(TypeError, match="never is a set of tool names, got 'parse'"):
        Limits(never="parse")  # type: ignore[arg-type]


def test_limits_by_tool_may_be_0_and_not_negative() -> None:
    limits = Limits(per_tool={"rows": 0})

    assert limits.inline_limit("rows") == 0
    assert limits.inline_limit("other") == 51_200
    assert limits.inline_limit(None) == 51_200
    with pytest.raises(ValueError, match=r"per_tool\['rows'\]"):
        Limits(per_tool={"rows": -1})


def test_default_limits_by_tool_cannot_be_changed_for_all() -> None:
    assert isinstance(Limits().per_tool, MappingProxyType)


def test_a_glimpse_renders_its_text() -> None:
    assert str(Glimpse("3 lines", {"lines": 3})) == "3 lines"


def test_the_wire_form_of_an_envelope_has_its_keys_in_order() -> None:
    envelope = Envelope.of(an_artifact(), is_error=True)

    assert list(envelope.to_wire()) == [
        "pointer",
        "preview",
        "sizeBytes",
        "note",
        "contentType",
        "glimpse",
        "isError",
    ]
    assert json.loads(str(envelope)) == envelope.to_wire()
    assert envelope.note == f'retrieve_context({{"artifactId":"art:{ID}"}})'


def test_what_is_not_there_is_not_on_the_wire() -> None:
    bare = Envelope(pointer="p", preview="", size_bytes=1, note="n")

    assert bare.to_wire() == {"pointer": "p", "preview": "", "sizeBytes": 1, "note": "n"}
    assert Envelope.of(an_artifact(glimpse=None)).glimpse is None


def test_an_envelope_is_text_as_people_wrote_it() -> None:
    assert '"preview":"żółć"' in str(Envelope(pointer="p", preview="żółć", size_bytes=1, note="n"))


def test_a_note_names_only_a_reader_that_can_read() -> None:
    assert Envelope.of(an_artifact(), reader=None).note == "pass the pointer to a tool"
    assert Envelope.of(an_artifact(length_chars=None)).note == "pass the pointer to a tool"
    assert Envelope.of(an_artifact(), reader="read").note.startswith("read({")


def test_an_artifact_says_how_it_is_read() -> None:
    assert an_artifact().read_back == read_back(f"art:{ID}")


def test_records_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        an_artifact().name = "other"  # type: ignore[misc]
