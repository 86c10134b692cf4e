"""Memory driven by random steps, beside a dict that says what it must hold."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from coatcheck import AgentMemory, Bank, Limits
from coatcheck.memory import MemoryEntry
from coatcheck.stores import FileStore, MemoryStore, ObjectStore, RedisStore, Store
from coatcheck.testing import ManualClock, S3Server

Result = TypeVar("Result")
Known = dict[str, tuple[str, object, str | None, datetime]]

KEYS = ("step:s1", "task:t1", "input:x\ny", "shared:a", "shared:task:t1", "shared: Task:t1\u200b")
KINDS = {"step": "step_result", "task": "task_result", "input": "input", "shared": "shared"}
AT = datetime(2026, 5, 7, tzinfo=UTC)

keys = st.sampled_from(KEYS)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=6,
) | st.integers(50, 70).map("x".__mul__)
times = st.none() | st.integers(0, 10).map(lambda days: AT + timedelta(days=days))
filters = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from([*KINDS.values()]) | st.lists(st.sampled_from([*KINDS.values()])),
        "keys": st.lists(keys),
        "key_prefix": st.sampled_from(["", "step:", "shared:", "shared:task"]),
        "sources": st.lists(st.sampled_from(["a", "b"])),
    },
)


class MemoryMachine(RuleBasedStateMachine):
    """Drives two objects on one store, as two processes would; each must hold what a dict holds."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.store = self.make_store()
        limits = Limits(inline_bytes=60)  # so that some values are banked
        self.both = [
            AgentMemory(Bank(self.store, clock=self.clock, limits=limits)) for _ in range(2)
        ]
        self.known: Known = {}
        self.heard: list[MemoryEntry] = []
        self.both[0].subscribe(self.heard.append)
        self.told = 0

    @staticmethod
    def make_store() -> Store:
        raise NotImplementedError

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(coroutine)

    def wait(self) -> None:
        self.clock.advance(1)

    @rule(
        key=keys,
        value=values,
        source=st.sampled_from([None, "a", "b"]),
        at=times,
        who=st.integers(0, 1),
        only_if_absent=st.booleans(),
    )
    def set(
        self,
        key: str,
        value: object,
        source: str | None,
        at: datetime | None,
        who: int,
        only_if_absent: bool,
    ) -> None:
        self.wait()
        now = datetime.fromtimestamp(self.clock(), UTC)
        before = self.known.get(key)
        is_written = before is None or not only_if_absent

        entry = self.run(
            self.both[who].set(
                key, value, source=source, created_at=at, only_if_absent=only_if_absent
            )
        )

        if is_written:
            at = at or (now if before is None else before[3])
            self.known[key] = (KINDS[key.partition(":")[0]], value, source, at)
            self.told += who == 0
        assert self.shape(entry) == (key, *self.known[key])

    @rule(key=keys, who=st.integers(0, 1))
    def delete(self, key: str, who: int) -> None:
        assert self.run(self.both[who].delete(key)) is (self.known.pop(key, None) is not None)

    @rule(chosen=filters, who=st.integers(0, 1))
    def list_some(self, chosen: Any, who: int) -> None:
        assert [entry.key for entry in self.run(self.both[who].list(**chosen))] == self.expected(
            chosen
        )

    @rule(chosen=filters, who=st.integers(0, 1))
    def clear_some(self, chosen: Any, who: int) -> None:
        self.run(self.both[who].clear(**chosen))
        for key in self.expected(chosen):
            del self.known[key]

    @rule(who=st.integers(0, 1), inline=st.booleans())
    def restore_a_snapshot_after_all_was_cleared(self, who: int, inline: bool) -> None:
        entries = self.run(self.both[who].snapshot(inline=inline))
        self.run(self.both[who].clear())
        self.wait()
        self.run(self.both[who].restore(entries))
        self.told += len(entries) * (who == 0)

    @invariant()
    def both_hold_what_is_expected(self) -> None:
        for memory in self.both:
            entries = self.run(memory.list())
            assert [self.shape(entry) for entry in entries] == [
                (key, *facts) for key, facts in self.known.items()
            ]
            assert self.run(memory.size()) == len(self.known)
            assert [self.run(memory.has(key)) for key in KEYS] == [k in self.known for k in KEYS]
        assert len(self.heard) == self.told

    def shape(self, entry: MemoryEntry) -> tuple[object, ...]:
        value = self.run(self.both[1].value_of(entry))
        return entry.key, entry.kind, value, entry.source, entry.created_at

    def expected(self, chosen: Any) -> list[str]:
        kind, sources = chosen.get("kind"), chosen.get("sources")
        return [
            key
            for key, (its_kind, _, source, _) in self.known.items()
            if (kind is None or its_kind == kind or its_kind in kind)
            and key in chosen.get("keys", KEYS)
            and key.startswith(chosen.get("key_prefix", ""))
            and (sources is None or source in sources)
        ]


def check(make_store: Callable[[], Store], runs: int, steps: int) -> None:
    machine = type("Machine", (MemoryMachine,), {"make_store": staticmethod(make_store)})
    chosen = settings(max_examples=runs, stateful_step_count=steps)
    run_state_machine_as_test(machine, settings=chosen)


def fresh(text: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{text}{number}"


def test_memory_in_this_process_behaves_as_a_dict_does() -> None:
    check(MemoryStore, 40, 15)


def test_memory_in_files_behaves_as_a_dict_does(tmp_path: Path) -> None:
    folders = fresh("store")
    check(lambda: FileStore(tmp_path / next(folders)), 5, 10)


def test_memory_on_redis_behaves_as_a_dict_does(redis_url: str) -> None:
    urls = fresh(redis_url)
    check(lambda: RedisStore(next(urls)), 5, 10)


def test_memory_on_s3_behaves_as_a_dict_does(s3: S3Server) -> None:
    prefixes = fresh("memory-laws-")
    check(lambda: ObjectStore(s3.address(next(prefixes))), 3, 8)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=100))
async def test_each_name_is_one_key_in_its_namespace_and_no_other(name: str) -> None:
    memory = AgentMemory()
    await memory.set(f"task:{name}", "of the executor")

    await memory.set(f"shared:{name}", "of a model")

    assert await memory.get_value(f"task:{name}") == "of the executor"
    assert [entry.key for entry in await memory.list(key_prefix="shared:")] == [f"shared:{name}"]


@pytest.mark.parametrize("chars", [0, 1, 59, 60, 61])
async def test_value_and_pointer_exclude_each_other(chars: int) -> None:
    memory = AgentMemory(Bank(MemoryStore(), limits=Limits(inline_bytes=60)))

    entry = await memory.set("shared:x", "x" * chars)

    assert (entry.pointer is None) is (chars < 60)
    assert await memory.value_of(entry) == "x" * chars
