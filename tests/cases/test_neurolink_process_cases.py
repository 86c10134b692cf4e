"""The cases of seed 004 on what lies in a store: foreign ids, processes and planted records."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coatcheck import Bank
from coatcheck.bank._record import Record
from coatcheck.errors import DamagedRecordError
from coatcheck.stores import FileStore, Store
from coatcheck.testing import ManualClock
from coatcheck.tools import retrieval_tools

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


async def ask(bank: Bank, **arguments: object) -> Any:
    """Return what `retrieve_context` answers, asked as a model does, from JSON text to JSON."""
    (tool,) = retrieval_tools(bank)
    return json.loads(await tool.call(json.dumps(arguments)))


def in_another_process(program: str, *arguments: object) -> str:
    """Run a program that leaves its answer on stdout."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_c37_an_id_that_is_a_path_is_unknown_and_the_real_one_still_works(
    tmp_path: Path,
) -> None:
    bank = Bank(FileStore(tmp_path / "store"))
    artifact = await bank.put(ALPHABET)
    beside = tmp_path / "store" / "s" / "default" / "records" / "planted"
    beside.write_bytes(b"planted inside")
    (tmp_path / "secret.txt").write_text("planted outside")

    for text in (
        f"../store/{artifact.id}",
        f"../records/{artifact.id}",
        f"art:../records/{artifact.id}",
        f"{artifact.pointer}/../{artifact.id}",
        "../../../../../../etc/passwd",
        "../secret.txt",
        str(tmp_path / "secret.txt"),
        "..",
        "sub/dir",
        "planted",
        "id.with.dots",
        f"{artifact.id}\x00",
        f"{artifact.id}\n",
        "",
    ):
        assert await bank.find(text) is None
        reply = await ask(bank, artifactId=text)
        assert reply["error"] == "unknown-pointer"
        assert "content" not in reply
    assert await bank.get(artifact.pointer) == ALPHABET
    assert await bank.get(artifact.id) == ALPHABET


PUT_IN_ANOTHER_PROCESS = """
import sys
from coatcheck import BlockingBank
with BlockingBank(sys.argv[1]) as bank:
    print(bank.put(sys.argv[2], name="foreign").pointer)
"""


READ_IN_ANOTHER_PROCESS = """
import json, sys
from coatcheck import BlockingBank
with BlockingBank(sys.argv[1]) as bank:
    artifact = bank.find(sys.argv[2])
    page = bank.read(sys.argv[2], offset=200_000, limit=5)
    named = bank.get("alphabet")
    print(json.dumps([artifact.label, artifact.preview, page.content, len(named)]))
"""


async def test_c38_a_second_process_reads_by_pointer_and_by_name(tmp_path: Path) -> None:
    text = "żółć" + ALPHABET * 10_000
    artifact = await Bank(FileStore(tmp_path / "store")).put(text, name="alphabet", label="letters")

    answer = in_another_process(READ_IN_ANOTHER_PROCESS, tmp_path / "store", artifact.pointer)

    assert json.loads(answer) == ["letters", text[:1_000], text[200_000:200_005], len(text)]


async def stored_record(store: Store, key: str) -> Record:
    stored = await store.get(key)
    assert stored is not None
    return Record.from_bytes(stored)


async def assert_unreadable(bank: Bank, pointer: str) -> None:
    """Assert that nothing of what a planted record points to is shown, in any way."""
    for read in (bank.find, bank.get, bank.payload, bank.read):
        with pytest.raises(DamagedRecordError, match=f"The record of '{pointer}' is damaged"):
            await read(pointer)
    with pytest.raises(DamagedRecordError, match=f"The record of '{pointer}' is damaged"):
        await bank.search(pointer, "secret")
    for reply in (
        await ask(bank, artifactId=pointer),
        await ask(bank, artifactId=pointer, search="secret"),
    ):
        assert reply["error"] == "store-unavailable"
        assert "content" not in reply
        assert "matches" not in reply
    assert await bank.delete(pointer) is True
    assert await bank.find(pointer) is None


async def test_c40_a_record_planted_in_another_scope_opens_no_foreign_payload(
    store: Store,
) -> None:
    owner = Bank(store, scope="owner")
    owned = await owner.put("the secret of the owner")
    record = await store.get(f"s/owner/records/{owned.id}")
    assert record is not None

    thief = Bank(store, scope="thief")
    await store.put(f"s/thief/records/{owned.id}", record)

    await assert_unreadable(thief, owned.pointer)
    assert await owner.get(owned.pointer) == "the secret of the owner"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "../secret.txt",
        "s/default/payloads/../../../../secret.txt",
        "s/default/payloads/{id}-/../../../../../secret.txt",
        "/etc/passwd",
        "s/default/payloads/{other}",
        "store/secret",
        "",
    ],
)
async def test_c40_a_record_that_names_another_place_is_refused(
    store: Store, tmp_path: Path, elsewhere: str
) -> None:
    (tmp_path / "secret.txt").write_text("the secret outside of the store")
    bank = Bank(store)
    artifact = await bank.put("the payload it had, of this length")
    other = await bank.put("the secret of another artifact")
    other_record = await stored_record(store, f"s/default/records/{other.id}")
    key = f"s/default/records/{artifact.id}"
    place = elsewhere.format(id=artifact.id, other=other_record.payload_key.rpartition("/")[2])
    record = await stored_record(store, key)
    await store.put(key, replace(record, payload_key=place).to_bytes())

    await assert_unreadable(Bank(store), artifact.pointer)
    assert await bank.get(other.pointer) == "the secret of another artifact"


async def test_c42_a_cleanup_keeps_what_another_process_put(
    tmp_path: Path, clock: ManualClock
) -> None:
    folder = tmp_path / "store"
    foreign = in_another_process(PUT_IN_ANOTHER_PROCESS, folder, "put elsewhere").strip()
    bank = Bank(FileStore(folder), clock=clock)
    own = await bank.put("put here")
    assert await bank.get(foreign) == "put elsewhere"
    clock.advance(10 * 365 * 24 * 3_600)

    assert await bank.cleanup(older_than_seconds=0) == 1
    assert await bank.find(own.pointer) is None
    assert await bank.get(foreign) == "put elsewhere"
    assert await Bank(FileStore(folder)).get("foreign") == "put elsewhere"
