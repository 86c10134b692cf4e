"""ADK's artifact service over a bank: its contexts and tools are the real ones."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.adk.artifacts import InMemoryArtifactService
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank, open_bank
from coatcheck.adapters.google_adk import CoatcheckPlugin
from coatcheck.adapters.google_adk_artifacts import CoatcheckArtifactService
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import MemoryStore

ANN: dict[str, Any] = {"app_name": "shop", "user_id": "ann", "session_id": "s1"}
BEN: dict[str, Any] = {**ANN, "user_id": "ben"}
LATER: dict[str, Any] = {**ANN, "session_id": "s2"}
PNG = types.Part.from_bytes(data=b"\x89PNG\r\n\x1a\n\x00\xff", mime_type="image/png")


def text(content: str) -> types.Part:
    return types.Part(text=content)


@pytest.fixture
def service() -> CoatcheckArtifactService:
    return CoatcheckArtifactService(Bank(MemoryStore()))


async def test_versions_count_from_nought_and_each_can_be_loaded(
    service: CoatcheckArtifactService,
) -> None:
    saved = [
        await service.save_artifact(filename="a", artifact=text(str(number)), **ANN)
        for number in range(9)
    ]

    assert saved == [*range(9)] == await service.list_versions(filename="a", **ANN)
    for version in range(9):
        part = await service.load_artifact(filename="a", version=version, **ANN)
        assert part == text(str(version))
    assert await service.load_artifact(filename="a", **ANN) == text("8")
    for missing in (9, -1):
        assert await service.load_artifact(filename="a", version=missing, **ANN) is None


async def test_parts_come_back_as_they_were_saved(service: CoatcheckArtifactService) -> None:
    named = types.Part(
        inline_data=types.Blob(data=b"a,b\n1,2\n", mime_type="text/csv", display_name="Orders")
    )
    file = types.Part.from_uri(file_uri="gs://bucket/a.pdf", mime_type="application/pdf")
    parts = [text(""), text("né\r\n\ud800"), PNG, named, file]
    # What its type says it is not is kept all the same.
    parts.append(types.Part.from_bytes(data=b"{no json", mime_type="application/json"))
    parts.append(types.Part.from_bytes(data=b"", mime_type="image/png"))

    for version, part in enumerate(parts):
        assert await service.save_artifact(filename="f", artifact=part, **ANN) == version
        assert await service.load_artifact(filename="f", **ANN) == part


async def test_part_may_be_given_as_its_json(service: CoatcheckArtifactService) -> None:
    wire = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    await service.save_artifact(filename="f", artifact=wire, **ANN)

    part = await service.load_artifact(filename="f", **ANN)

    assert part == types.Part.from_bytes(data=b"\x89PNG\r\n\x1a\n", mime_type="image/png")


async def test_part_that_is_neither_text_nor_bytes_nor_a_reference_is_refused(
    service: CoatcheckArtifactService,
) -> None:
    call = types.Part(function_call=types.FunctionCall(name="f"))
    with pytest.raises(InvalidArgumentError, match="An artifact is a text"):
        await service.save_artifact(filename="f", artifact=call, **ANN)

    assert await service.list_artifact_keys(**ANN) == []


@given(
    data=st.binary(max_size=64),
    mime_type=st.sampled_from(
        ["text/plain", "application/json", "image/png", "application/x-npy", "text/csv", "odd/one"]
    ),
)
def test_bytes_are_kept_to_the_byte_whatever_they_are_called(data: bytes, mime_type: str) -> None:
    async def kept() -> types.Part | None:
        service = CoatcheckArtifactService(Bank(MemoryStore()))
        part = types.Part.from_bytes(data=data, mime_type=mime_type)
        await service.save_artifact(filename="f", artifact=part, **ANN)
        return await service.load_artifact(filename="f", **ANN)

    part = asyncio.run(kept())

    assert part is not None
    assert part.inline_data is not None
    assert (part.inline_data.data, part.inline_data.mime_type) == (data, mime_type)


async def test_what_is_saved_at_once_gets_a_number_each(tmp_path: Path) -> None:
    async with open_bank(f"file:{tmp_path}") as one, open_bank(f"file:{tmp_path}") as two:
        services = [CoatcheckArtifactService(bank) for bank in (one, two)] * 10
        versions = await asyncio.gather(
            *(
                service.save_artifact(filename="a", artifact=text(str(number)), **ANN)
                for number, service in enumerate(services)
            )
        )

        assert sorted(versions) == [*range(20)]
        for number, version in enumerate(versions):
            part = await services[0].load_artifact(filename="a", version=version, **ANN)
            assert part == text(str(number))


async def test_file_is_of_its_session_and_a_users_file_of_all_his_sessions(
    service: CoatcheckArtifactService,
) -> None:
    await service.save_artifact(filename="a", artifact=text("of s1"), **ANN)
    await service.save_artifact(filename="user:a", artifact=text("of ann"), **ANN)

    assert await service.load_artifact(filename="a", **LATER) is None
    assert await service.load_artifact(filename="user:a", **LATER) == text("of ann")
    assert await service.load_artifact(filename="user:a", **BEN) is None
    assert await service.load_artifact(filename="a", **BEN) is None
    assert await service.list_artifact_keys(**ANN) == ["a", "user:a"]
    assert await service.list_artifact_keys(**LATER) == ["user:a"]
    assert await service.list_artifact_keys(**BEN) == []


async def test_file_that_is_saved_without_a_session_is_the_users(
    service: CoatcheckArtifactService,
) -> None:
    user: dict[str, Any] = {"app_name": "shop", "user_id": "ann"}
    assert await service.save_artifact(filename="a", artifact=text("one"), **user) == 0
    assert await service.save_artifact(filename="user:a", artifact=text("two"), **ANN) == 1

    assert await service.load_artifact(filename="a", version=0, **user) == text("one")
    assert await service.list_artifact_keys(**user) == ["user:a"]
    assert await service.list_versions(filename="user:a", **LATER) == [0, 1]


async def test_session_cannot_be_called_so_that_it_reads_the_users_files(
    service: CoatcheckArtifactService,
) -> None:
    await service.save_artifact(filename="user:a", artifact=text("of ann"), **ANN)

    for session_id in ("@artifacts", "%40artifacts", "", "user"):
        session: dict[str, Any] = {**ANN, "session_id": session_id}
        assert await service.load_artifact(filename="a", **session) is None


async def test_delete_removes_all_versions_and_what_they_held() -> None:
    bank = Bank(MemoryStore())
    service = CoatcheckArtifactService(bank)
    for part in (text("one"), PNG, text("three")):
        await service.save_artifact(filename="a", artifact=part, **ANN)
        await service.save_artifact(filename="b", artifact=part, **ANN)
    own = CoatcheckPlugin(bank).bank_for("s1", app_name="shop", user_id="ann")
    assert (await own.usage()).artifacts == 6

    await service.delete_artifact(filename="a", **ANN)

    assert await service.list_versions(filename="a", **ANN) == []
    assert await service.load_artifact(filename="a", version=1, **ANN) is None
    assert await service.list_artifact_keys(**ANN) == ["b"]
    assert (await own.usage()).artifacts == 3
    assert await service.save_artifact(filename="a", artifact=text("anew"), **ANN) == 0
    await service.delete_artifact(filename="never there", **ANN)


async def test_versions_tell_their_type_time_metadata_and_where_they_lie() -> None:
    bank = Bank(MemoryStore(), clock=lambda: 1_700_000_000.0)
    service = CoatcheckArtifactService(bank)
    file = types.Part.from_uri(file_uri="gs://bucket/a.pdf", mime_type="application/pdf")
    await service.save_artifact(
        filename="a", artifact=text("x"), custom_metadata={"by": "ann"}, **ANN
    )
    await service.save_artifact(filename="a", artifact=PNG, **ANN)
    await service.save_artifact(filename="a", artifact=file, **ANN)

    told = await service.list_artifact_versions(filename="a", **ANN)

    assert [each.version for each in told] == [0, 1, 2]
    assert [each.mime_type for each in told] == ["text/plain", "image/png", "application/pdf"]
    assert [each.custom_metadata for each in told] == [{"by": "ann"}, {}, {}]
    assert told[0].create_time == pytest.approx(1_700_000_000.0)
    assert told[2].canonical_uri == "gs://bucket/a.pdf"
    own = CoatcheckPlugin(bank).bank_for("s1", app_name="shop", user_id="ann")
    assert (
        await own.payload(told[1].canonical_uri.removeprefix("art://"))
        == b"\x89PNG\r\n\x1a\n\x00\xff"
    )
    assert await service.get_artifact_version(filename="a", **ANN) == told[2]
    assert await service.get_artifact_version(filename="a", version=0, **ANN) == told[0]
    assert await service.get_artifact_version(filename="a", version=3, **ANN) is None
    assert await service.get_artifact_version(filename="b", **ANN) is None


async def test_file_names_are_any_text(service: CoatcheckArtifactService) -> None:
    names = ["../up", "a/b", "né 🎟", "0 a", "x" * 300, "art:x", " "]
    for name in names:
        await service.save_artifact(filename=name, artifact=text(name), **ANN)

    assert await service.list_artifact_keys(**ANN) == sorted(names)
    for name in names:
        assert await service.load_artifact(filename=name, **ANN) == text(name)


async def test_model_reads_a_file_by_its_name_with_our_own_tool() -> None:
    bank = Bank(MemoryStore())
    await CoatcheckArtifactService(bank).save_artifact(
        filename="orders.csv",
        artifact=types.Part.from_bytes(data=b"id,price\n1,2\n", mime_type="text/csv"),
        **ANN,
    )
    own = CoatcheckPlugin(bank).bank_for("s1", app_name="shop", user_id="ann")

    assert (await own.read("orders.csv", unit="rows")).content == '[{"id":"1","price":"2"}]'


async def test_service_agrees_with_adks_own(service: CoatcheckArtifactService) -> None:
    theirs = InMemoryArtifactService()
    for each in (theirs, service):
        for name, part in (("a", text("1")), ("user:b", PNG), ("a", text("2"))):
            await each.save_artifact(filename=name, artifact=part, **ANN)
        # As a session that is rewound saves it.
        gone = types.Part.from_bytes(data=b"", mime_type="application/octet-stream")
        await each.save_artifact(filename="c", artifact=gone, **ANN)

    assert await service.list_artifact_keys(**ANN) == await theirs.list_artifact_keys(**ANN)
    for name in ("a", "user:b", "c", "d"):
        for version in (None, 0, 1, 5):
            asked: dict[str, Any] = {"filename": name, "version": version, **ANN}
            assert await service.load_artifact(**asked) == await theirs.load_artifact(**asked)
        asked = {"filename": name, **ANN}
        assert await service.list_versions(**asked) == await theirs.list_versions(**asked)
