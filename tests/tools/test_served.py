"""What a server of artifacts is asked over MCP."""

import pytest

from coatcheck import Bank
from coatcheck.errors import InvalidArgumentError, UnknownPointerError
from coatcheck.stores import MemoryStore
from coatcheck.tools import META_SCOPE, read_artifact_resource, stated_scope

MIB = 1024 * 1024


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore())


@pytest.mark.parametrize("uri", ["file:///a", "data:,art", "arts://x", "", "http://[oops"])
async def test_other_addresses_are_left_to_others(bank: Bank, uri: str) -> None:
    assert await read_artifact_resource(bank, uri) is None


@pytest.mark.parametrize(
    "rest", ["//x", "//", "//{id}/more", "//{id}#L1", "//art:{id}", "", "/{id}", "{id}/", "{id}#L1"]
)
async def test_address_that_is_no_artifacts_is_unknown(bank: Bank, rest: str) -> None:
    id_ = (await bank.put("text")).id

    with pytest.raises(UnknownPointerError):
        await read_artifact_resource(bank, f"art:{rest.format(id=id_)}")


async def test_text_is_read_with_surrogates_that_travel_and_bytes_as_they_are(bank: Bank) -> None:
    text, blob = await bank.put("a\ud800é"), await bank.put(b"\x00\xff")
    expected = {
        f"art://{text.id}": ("a\ufffdé", "text/plain"),
        f"art://{blob.id}/": (b"\x00\xff", blob.content_type),
        f"art://{text.id}?offset=2": ("é", "text/plain"),
        f"art://{blob.id}?offset=1&limit=1": (b"\xff", blob.content_type),
        text.pointer: ("a\ufffdé", "text/plain"),
        f"{blob.pointer}?offset=1": (b"\xff", blob.content_type),
    }

    for uri, read in expected.items():
        found = await read_artifact_resource(bank, uri)
        assert found is not None
        assert (found.content, found.content_type) == read
        assert (found.page is not None) == ("?" in uri)


async def test_whole_is_sent_up_to_32_mib_and_more_in_windows(bank: Bank) -> None:
    whole = await bank.put(bytes(32 * MIB))
    more = await bank.put(bytes(32 * MIB + 1))

    read = await read_artifact_resource(bank, f"art://{whole.id}")
    assert read is not None
    assert len(read.content) == 32 * MIB
    with pytest.raises(InvalidArgumentError, match="33,554,433 bytes"):
        await read_artifact_resource(bank, f"art://{more.id}")
    window = await read_artifact_resource(bank, f"art://{more.id}?offset=33554432&limit=9")
    assert window is not None
    assert window.content == b"\x00"


@pytest.mark.parametrize("query", ["offset=-1", "limit=x", "limit=", "page=1", "offset=١"])
async def test_window_is_whole_numbers_by_their_names(bank: Bank, query: str) -> None:
    id_ = (await bank.put("text")).id

    with pytest.raises(InvalidArgumentError, match="is no part of a window"):
        await read_artifact_resource(bank, f"art://{id_}?{query}")


def test_scope_is_stated_by_a_text_of_1_to_200_characters() -> None:
    assert stated_scope(None) is None
    assert stated_scope({"other": 1}) is None
    assert stated_scope({META_SCOPE: "r"}) == "r"
    assert stated_scope({META_SCOPE: "x" * 200}) == "x" * 200


@pytest.mark.parametrize("said", ["", "x" * 201, 1, ["r"], {"r": 1}, False])
def test_scope_of_any_other_kind_is_refused(said: object) -> None:
    with pytest.raises(InvalidArgumentError, match="1 to 200 characters"):
        stated_scope({META_SCOPE: said})
