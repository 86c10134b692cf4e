import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.bank._keys import (
    ScopeKeys,
    due_ns,
    inverted,
    is_segment,
    is_stamped,
    listed_bytes,
    listed_id,
    listed_ns,
    owner_of,
    scope_segment,
)

ID = "00000000-0000-4000-8000-000000000005"


@pytest.mark.parametrize(
    ("scope", "segment"),
    [
        ("default", "default"),
        ("review-1421_b", "review-1421_b"),
        ("Default", "%44efault"),
        ("a/b", "a%2fb"),
        ("..", "%2e%2e"),
        ("%41", "%2541"),
        ("~", "%7e"),
        ("é", "%c3%a9"),
        ("\x00", "%00"),
        ("\ud83d", "%ed%a0%bd"),
        ("x" * 120, "x" * 120),
    ],
)
def test_a_scope_becomes_one_plain_segment(scope: str, segment: str) -> None:
    assert scope_segment(scope) == segment


def test_a_long_scope_keeps_80_characters_and_a_hash_of_the_whole() -> None:
    segment = scope_segment("x" * 121)

    assert segment[:81] == "x" * 80 + "~"
    assert len(segment) == 113
    assert segment != scope_segment("x" * 122)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_two_scopes_share_a_segment(one: str, other: str) -> None:
    assert (scope_segment(one) == scope_segment(other)) is (one == other)


@pytest.mark.parametrize(
    ("time_ns", "digits"),
    [
        (-1, "f" * 16),
        (0, "f" * 16),
        (1, "f" * 15 + "e"),
        (2**64 - 1, "0" * 16),
        (2**64, "0" * 16),
        (10**21, "0" * 16),
    ],
)
def test_a_time_that_no_clock_should_show_keeps_16_digits(time_ns: int, digits: str) -> None:
    assert inverted(time_ns) == digits
    assert listed_id(ScopeKeys.of("a").listing(time_ns, ID, 5)) == ID


def test_an_entry_is_stamped_with_its_time_alone() -> None:
    keys = ScopeKeys.of("a")

    for entry in (keys.listing(5, ID, 5), keys.name("n", 5, ID)):
        assert is_stamped(entry, 5)
        assert not is_stamped(entry, 4)


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_listing_keys_sort_newest_first(one: int, other: int) -> None:
    assert (inverted(one) < inverted(other)) is (one > other)


def test_the_id_is_read_back_from_listing_and_name_keys() -> None:
    keys = ScopeKeys.of("a scope")

    assert listed_id(keys.listing(1, ID, 5)) == ID
    assert listed_id(keys.name("n", 1, ID)) == ID
    assert keys.listing(1, ID, 5).startswith(keys.listing_folder)


@pytest.mark.parametrize(
    "key", ["", "s/a/listing/", f"s/a/listing/{'0' * 16}-not-an-id-5", f"x-{ID}"]
)
def test_a_key_that_was_not_put_by_us_holds_no_id(key: str) -> None:
    assert listed_id(key) is None


@pytest.mark.parametrize(
    "file", ["", "-0123abcd", "-0123abcd.", "-0123abc.txt", "-0123abcd.txt/..", "-0123ABCD.txt"]
)
def test_a_payload_key_is_known_by_its_whole_form(file: str) -> None:
    keys = ScopeKeys.of("a")

    assert keys.is_payload_of(ID, keys.payload(f"{ID}-0123abcd.txt"))
    assert not keys.is_payload_of(ID, keys.payload(f"{ID}{file}"))
    assert not keys.is_payload_of(ID, ScopeKeys.of("b").payload(f"{ID}-0123abcd.txt"))


@given(st.text(min_size=1, max_size=200))
def test_every_scope_has_a_segment_and_no_path_is_one(scope: str) -> None:
    assert is_segment(scope_segment(scope))
    assert not is_segment(f"../{scope}")
    assert not is_segment("")


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**60))
def test_listing_and_due_keys_tell_what_they_were_made_of(time_ns: int, size_bytes: int) -> None:
    keys = ScopeKeys.of("a/b")
    listing, due = keys.listing(time_ns, ID, size_bytes), keys.due(time_ns, ID)

    assert (listed_id(listing), listed_ns(listing), listed_bytes(listing)) == (
        ID, time_ns, size_bytes,
    )  # fmt: skip
    assert (listed_id(due), due_ns(due)) == (ID, time_ns)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_due_keys_stand_in_the_order_of_their_times(one: int, other: int) -> None:
    keys = ScopeKeys.of("a")

    assert (keys.due(one, ID) < keys.due(other, ID)) is (one < other)


@pytest.mark.parametrize(
    "name", [f"{'z' * 16}-{ID}-x", f"{'+' * 16}-{ID}-", f"0x1234567890abcd-{ID}"]
)
def test_a_key_that_another_put_there_is_never_old_nor_due(name: str) -> None:
    assert listed_ns(f"s/a/listing/{name}") == due_ns(f"s/a/due/{name}") == 2**64 - 1
    assert listed_bytes(f"s/a/listing/{name}") == 0


def test_a_payload_key_names_its_owner() -> None:
    keys = ScopeKeys.of("Run 7/b")

    assert owner_of(keys.payload(f"{ID}-00000000.txt")) == keys


def test_runs_of_two_scopes_never_share_a_segment() -> None:
    names = ["r1", "R1", "", "a/r1", "b/r1", "r1/"]
    scopes = ["a", "a/b", "A", "", "b"]

    segments = {ScopeKeys.of(scope).run_segment(name) for scope in scopes for name in names}

    assert len(segments) == len(names) * len(scopes)
