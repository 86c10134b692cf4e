"""Reports on failures: a tool's own is passed on whole, a full disk costs no result."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coatcheck import Bank, Envelope, Mirror, mirror
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import MemoryStore
from coatcheck.tools import retrieval_tools

FRAMES = "".join(f'  File "step{n}.py", line {n}, in run\n' for n in range(5_500))
TRACE = f"Traceback (most recent call last):\n{FRAMES}ValueError: boom 42"


async def listed(bank: Bank) -> list[str]:
    return [artifact.pointer async for artifact in bank.list()]


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n \n", "\x1b[0m\n"])
async def test_br_061_a_large_failure_keeps_its_flag_and_shows_its_last_line(
    bank: Bank, end: str
) -> None:
    shown = await Mirror(bank).offload(TRACE + end, tool="deploy", is_error=True)

    assert len(TRACE) > 200_000
    assert isinstance(shown, Envelope)
    assert shown.is_error is True
    wire = json.loads(str(shown))
    assert wire["isError"] is True
    assert "ValueError: boom 42" in wire["glimpse"]
    (reader,) = retrieval_tools(bank)
    content, offset = "", 0
    while offset is not None:
        reply = json.loads(await reader.call({"artifactId": shown.pointer, "offset": offset}))
        content, offset = content + reply["content"], reply.get("nextOffset")
    assert content == TRACE + end
    call = {"artifactId": shown.pointer, "search": "valueerror:"}
    assert json.loads(await reader.call(call))["matches"][0]["line"] == 5_502


async def test_br_061_several_last_lines_of_a_failure_are_shown(bank: Bank) -> None:
    shown = await Mirror(bank).offload(
        TRACE + "\nnote: first hint\nnote: second hint\n", is_error=True
    )

    for line in ("ValueError: boom 42", "note: first hint", "note: second hint"):
        assert line in str(shown)


@pytest.mark.parametrize("size", [1, 1_000, 51_199, 51_200, 51_201])
async def test_br_061_a_failure_below_the_limit_is_untouched_and_not_banked(
    bank: Bank, size: int
) -> None:
    text = "e" * size

    shown = await Mirror(bank).offload(text, tool="deploy", is_error=True)

    assert isinstance(shown, Envelope) == (size >= 51_200)
    assert (shown is text) == (size < 51_200)
    assert len(await listed(bank)) == (size >= 51_200)


async def test_br_061_success_carries_no_flag(bank: Bank) -> None:
    shown = await Mirror(bank).offload(TRACE, tool="deploy")

    assert isinstance(shown, Envelope)
    assert shown.is_error is False
    assert "isError" not in shown.to_wire()


class BoomError(Exception):
    """A tool's own error, which no part of ours knows."""


@pytest.mark.parametrize(
    "error",
    [
        BoomError("x" * 300_000),
        ValueError("boom 42"),
        StoreUnavailableError("the tool's own store"),
    ],
    ids=["unknown", "built-in", "ours"],
)
async def test_br_061_what_a_mirrored_tool_raises_passes_through_untouched(
    bank: Bank, error: Exception
) -> None:
    def tool(_text: str = "") -> str:
        raise error

    async def waiting(_text: str = "") -> str:
        raise error

    pointer = (await bank.put("x")).pointer
    before = (error.args, error.__cause__, error.__context__)
    for arguments in ((), (pointer,)):
        with pytest.raises(type(error)) as raised:
            mirror(tool, bank)(*arguments)
        assert raised.value is error
        with pytest.raises(type(error)) as raised:
            await mirror(waiting, bank)(*arguments)
        assert raised.value is error
    assert (error.args, error.__cause__, error.__context__) == before
    assert await listed(bank) == [pointer]


def test_br_061_ctrl_c_in_a_mirrored_tool_ends_the_call() -> None:
    def tool() -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mirror(tool, Bank(MemoryStore()))()


FULL = """
import asyncio, errno, json, os, resource, sys
from coatcheck import Bank, Mirror, mirror
from coatcheck.errors import StoreUnavailableError
from coatcheck.stores import FileStore

root, how, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = "0123456789" * (size // 10)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
countdown = -1


def hook(event, of):
    global countdown
    makes = event == "open" and of[2] & os.O_EXCL
    if makes or event in ("os.rename", "os.link"):
        countdown -= 1
        if countdown == -1:
            raise OSError(errno.ENOSPC, "No space left on device")


sys.addaudithook(hook)


def tool(): return text
async def waiting(): return text


def drafts(): return sorted(os.listdir(root + "/tmp")) if os.path.isdir(root + "/tmp") else []


async def main():
    global countdown
    store = FileStore(root)
    bank = Bank(store)
    await Bank(store, scope="other").put("makes the folders")
    limits = [0, 1, 4_096, 40_000] if how == "write" else range(12)
    report = []
    for limit in limits:
        for name, call in (
            ("sync", mirror(tool, bank)),
            ("async", mirror(waiting, bank)),
            ("offload", lambda: Mirror(bank).offload(text, tool="t", call_id="c%s" % limit)),
            ("put", lambda: bank.put(text, name="n")),
        ):
            before = [artifact.pointer async for artifact in bank.list()]
            if how == "write":
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            else:
                countdown = limit
            try:
                shown = call()
                shown = await shown if asyncio.iscoroutine(shown) else shown
            except StoreUnavailableError as error:
                shown = f"unavailable: {error}"
            failed = how == "write" or countdown < 0
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            countdown = -1
            after = [artifact.pointer async for artifact in bank.list()]
            again = await mirror(waiting, bank)()
            report.append({
                "call": name, "limit": limit, "failed": failed, "left": drafts(),
                "shown": str(shown), "new": [p for p in after if p not in before],
                "again": await bank.get(again.pointer) == text,
            })
    print(json.dumps(report))


asyncio.run(main())
"""


@pytest.mark.parametrize("size", [60_000, 300_000])
@pytest.mark.parametrize("how", ["write", "rename"])
def test_br_088_a_full_disk_leaves_no_pointer_and_no_draft_and_is_got_over(
    tmp_path: Path, how: str, size: int
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "store"), how, str(size)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    text = "0123456789" * (size // 10)
    report = json.loads(run.stdout)
    failures = [entry for entry in report if entry["failed"]]
    assert {entry["call"] for entry in failures} == {"sync", "async", "offload", "put"}
    assert len(failures) >= 12
    for entry in report:
        assert entry["left"] == []
        assert entry["again"] is True
    for entry in failures:
        shown = entry["shown"]
        assert "art:" not in shown
        assert entry["new"] == []
        if entry["call"] == "put":
            assert shown.startswith("unavailable: ")
        elif size <= 200_000:
            assert shown == text
        else:
            assert shown.startswith(text[:25_000])
            assert shown.endswith(text[-25_000:])
            assert "was not kept" in shown
            assert "250,000 of 300,000" in shown
            assert len(shown) < 51_000
