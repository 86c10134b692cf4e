"""Scopes, names and pointers that try to break out, as hypothesis makes them up."""

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coatcheck import Bank, CoatcheckError, Mirror
from coatcheck.bank._keys import ScopeKeys, is_name, is_segment, scope_segment
from coatcheck.records import is_pointer
from coatcheck.stores import FileStore, MemoryStore, Store
from coatcheck.tools import artifact_tools, as_failure, retrieval_tools

from .conftest import Recorded, recorded

SECRET = "the secret of another scope"
_FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
_SEGMENT = re.compile(r"[A-Za-z0-9_~%.-]{1,200}")

PARTS = [
    *("/", "\\", "//", "/../", "..", ".", ":", "#", "%2f", "%2F", "%252f", "~", "*", "?"),
    *("\0", "\n", "\r\n", "\t", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\u200b"),
    *("\u0430", "\uff41", "a\u0301", "\xe1", "\u0410", "\u0131", "\u0130", "\u017f", "\xdf"),
    *("\ufb01", "\u212b", "\xc5", "\uff10", "\u0663", "\u2044", "\uff0f", "\ud800", "\udfff"),
    *("s/", "records/", "payloads/", "grants/", "names/", "store/secret", "store/scopes/", "tmp/"),
    *("a", "b", "A", "default", " "),
]
"""Separators and encodings of them, controls, lookalikes, and the words of our keys."""


def long(part: str, end: str) -> str:
    """Return 4,000 characters that differ from others like them at the end only."""
    return (part * 4_000)[: 4_000 - len(end)] + end


joined = (
    st.lists(st.sampled_from(PARTS) | st.text(max_size=3), min_size=1, max_size=8)
    .map("".join)
    .filter(bool)
)
hostile = joined | st.text(min_size=1, max_size=40) | st.builds(long, joined, joined)


def variants(text: str) -> list[str]:
    """Return texts that someone could take for this one."""
    raw = text.encode("utf-8", "surrogatepass")
    written = [
        *(text.upper(), text.lower(), text.title(), text.casefold(), text.swapcase(), text.strip()),
        *(f"{text} ", f" {text}", f"{text}/", f"/{text}", f"./{text}", f"{text}/.", f"x/../{text}"),
        *(f"{text}\0", f"{text}\n", f"{text}#", f"{text}*", text[:-1], f"{text}{text}", text[::-1]),
        *(quote(raw, safe=""), quote(raw), raw.hex(), scope_segment(text), f"s/{text}"),
        *(ScopeKeys.of(text).name_folder(text), ScopeKeys.of(text).listing_folder),
    ]
    visible = text.encode("utf-8", "replace").decode()
    written += [unicodedata.normalize(form, visible) for form in _FORMS]
    return [each for each in dict.fromkeys(written) if each and each != text]


@given(hostile, st.data())
def test_no_two_scopes_share_a_key_and_none_can_leave_its_folder(
    other: str, data: st.DataObject
) -> None:
    for scope in (other, data.draw(st.sampled_from(variants(other))), data.draw(hostile)):
        keys = ScopeKeys.of(scope)

        assert is_segment(keys.segment)
        assert (keys.segment == scope_segment(other)) == (scope == other)
        for key in (keys.record("x"), keys.name(other, 5, "x"), keys.scope, keys.grant("x")):
            assert key.startswith((f"s/{keys.segment}/", f"store/scopes/{keys.segment}"))
            assert all(_SEGMENT.fullmatch(part) for part in key.split("/"))
            assert not any(part.startswith(".") for part in key.split("/"))
            assert len(key) <= 900


async def outcomes(bank: Bank, asked: str) -> list[str]:
    """Return what every way to an artifact says of a text, errors in words."""
    (retrieve,) = retrieval_tools(bank)
    _, get_artifact, _ = artifact_tools(bank)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: bank.find(asked),
        lambda: bank.get(asked),
        lambda: bank.read(asked),
        lambda: bank.search(asked, "secret"),
        lambda: bank.query(asked, "$"),
        lambda: bank.delete(asked),
        lambda: bank.grant(asked, to_scope="a third"),
        lambda: bank.revoke(asked, from_scope="a third"),
        lambda: Mirror(bank).resolve({"x": [asked]}),
        lambda: retrieve.call({"artifactId": asked}),
        lambda: retrieve.call({"artifactId": asked, "query": f'SELECT * FROM "{asked}"'}),
        lambda: get_artifact.call({"pointerOrName": asked}),
    ]
    said: list[str] = []
    for call in calls:
        try:
            said.append(repr(await call()))
        except CoatcheckError as error:
            said.append(str(as_failure(error)))
    return said


def stays_inside(record: Recorded, scope: str) -> bool:
    """Return whether all keys that were named are of the scope, or of the store as a whole."""
    folder = f"s/{ScopeKeys.of(scope).segment}/"
    third = ScopeKeys.of("a third").grant("")
    return all(key.startswith((folder, "store/", third)) for key in record.keys)


def tries(asked: str, mine: str, pointer: str) -> list[str]:
    """Return texts by which someone could try to get at an artifact."""
    id_ = pointer.removeprefix("art:")
    texts = [asked, *variants(asked), pointer, id_, *variants(pointer), *variants(id_)]
    texts += [f"{pointer}{asked}", f"{asked}{pointer}", f"art:{asked}", f"art:{mine}/{id_}"]
    return [*texts, ScopeKeys.of(mine).record(id_), f"../{scope_segment(mine)}/records/{id_}"]


async def break_out(record: Recorded, mine: str, theirs: str, texts: Sequence[str]) -> list[str]:
    """Return what a scope is told that tries to get at what another one has."""
    bank = Bank(record.store, scope=theirs)
    record.calls.clear()
    said = [each for text in texts for each in await outcomes(bank, text)]
    assert [each async for each in bank.list(granted=True)] == []
    assert stays_inside(record, theirs)
    return said


@given(hostile, hostile, st.data())
def test_no_text_gets_at_what_another_scope_has(mine: str, asked: str, data: st.DataObject) -> None:
    theirs = data.draw(st.sampled_from(variants(mine)) | hostile)
    assume(theirs != mine)
    record = recorded(MemoryStore)
    name = asked if is_name(asked) else None
    artifact = asyncio.run(Bank(record.store, scope=mine).put(SECRET, name=name))
    texts = st.lists(st.sampled_from(tries(asked, mine, artifact.pointer)), max_size=4)

    said = asyncio.run(break_out(record, mine, theirs, [asked, artifact.id, *data.draw(texts)]))

    assert not [each for each in said if SECRET in each]
    assert asyncio.run(Bank(record.store, scope=mine).get(artifact.pointer)) == SECRET


@given(hostile, hostile)
def test_on_disk_no_text_leaves_the_folder_of_the_store(scope: str, asked: str) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "in" / "store"
        record = recorded(FileStore, root)
        asyncio.run(Bank(record.store, scope=scope).put(SECRET, name="n"))

        asyncio.run(break_out(record, scope, f"{scope}2", [asked, f"art:{asked}"]))

        assert [path.name for path in Path(folder).iterdir()] == ["in"]
        assert [path.name for path in (Path(folder) / "in").iterdir()] == ["store"]
        assert {path.name for path in root.iterdir()} <= {"s", "store", "tmp"}


@given(hostile)
def test_a_name_finds_what_bears_exactly_that_name(name: str) -> None:
    async def found(store: Store) -> list[object]:
        bank = Bank(store)
        artifact = await bank.put("x", name=name)
        assert await bank.find(name) == artifact
        return [await bank.find(each) for each in variants(name)]

    assume(is_name(name))

    assert set(asyncio.run(found(MemoryStore()))) == {None}


@given(hostile)
def test_what_is_no_pointer_to_the_letter_is_none(text: str) -> None:
    pointer = "art:12345678-1234-4123-8123-123456781234"
    for each in (text, f"{pointer}{text}", f"{text}{pointer}", f"art:{text}", *variants(pointer)):
        whole, mark, _ = each.partition("#")

        assert not is_pointer(each) or (whole == pointer and bool(mark) == (each != pointer))


LONG = ["/" * 4_000, "../" * 1_333, "%2f" * 1_333, "\0" * 4_000, "а" * 4_000, "art:" + "1" * 3_996]


@pytest.mark.parametrize("text", LONG)
async def test_a_text_of_4_000_characters_gets_a_short_answer(text: str) -> None:
    bank = Bank(MemoryStore(), scope=text)
    artifact = await bank.put(SECRET)

    said = await outcomes(Bank(MemoryStore()), text)

    assert await bank.get(artifact.pointer) == SECRET
    assert all(len(each) < 1_000 for each in said if "error" in each)
    assert len(ScopeKeys.of(text).record(artifact.id)) < 200
