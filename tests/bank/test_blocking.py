"""The bank without a loop, in a process that forks."""

import subprocess
import sys
from pathlib import Path

from coatcheck import BlockingBank

FORK = """
import os, signal, sys
from coatcheck import BlockingBank
bank = BlockingBank("file:" + sys.argv[1])
bank.put("x" * 1_000, name="n")
child = os.fork()
if child == 0:
    signal.alarm(30)
    with bank:
        bank.put("from the child", name="c")
        print(len(bank.get("n")), flush=True)
    bank.close()
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), bank.get("c"))
bank.close()
"""

FORK_IN_A_PUT = """
import asyncio, os, signal, threading
from coatcheck import BlockingBank
from coatcheck.stores import MemoryStore

class Halting(MemoryStore):
    begun, may_end = threading.Event(), threading.Event()

    async def create(self, key, payload):
        self.begun.set()
        while not self.may_end.is_set():
            await asyncio.sleep(0.001)
        return await super().create(key, payload)

store = Halting()
with BlockingBank("memory:") as bank:
    bank.use_store(store)
    putting = threading.Thread(target=bank.put, args=("x",))
    putting.start()
    store.begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        store.may_end.set()
        print(bank.get(bank.put("from the child").pointer), flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status))
    store.may_end.set()
    putting.join()
"""


def test_a_forked_child_does_not_wait_for_what_its_parent_was_doing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK_IN_A_PUT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.split("\n") == ["from the child", "0", ""]


def test_a_forked_child_uses_the_bank_and_closes_nothing_of_its_parent(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.split("\n") == ["1000", "0 from the child", ""]


def test_a_second_close_does_nothing(tmp_path: Path) -> None:
    with BlockingBank(tmp_path) as bank:
        artifact = bank.put("x")
        bank.close()

    with BlockingBank(tmp_path) as again:
        assert again.get(artifact.pointer) == "x"
