"""How things are timed: warm, contenders in turn, order rotated, medians, ratios to a limit."""

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Step = Callable[[], Awaitable[object]]
Clock = Callable[[], float]


def processor_seconds() -> float:
    """Return what this process and its ended children have had of the processors.

    On a machine that others use too, this still tells contenders apart; waiting is not in it.
    """
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


_IMPORT = """
import sys, time
clock = time.process_time if sys.argv[2] == "cpu" else time.perf_counter
start = clock()
__import__(sys.argv[1])
seconds = clock() - start
import json
print(json.dumps([seconds, sorted(sys.modules)]))
"""

CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": processor_seconds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured number, beside its limit and what is to be reached."""

    part: str
    name: str
    measured: float
    unit: str
    limit: float | None = None
    """The best that can be had, from the same run and in the same unit."""
    ratio: float | None = None
    """Of the limit; how it is formed is in `target`."""
    target: str = ""
    reached: bool | None = None
    """None where no number is to be reached."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the work. Only `run` is timed; `undo` cleans up after it, each time."""

    run: Step
    undo: Step | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """Times contenders in turn.

    Args:
        clock: Seconds, of whatever kind.
        calls: Calls in one loop, of what takes microseconds.
        call_rounds: Loops of each kind.
    """

    clock: Clock
    calls: int
    call_rounds: int

    async def in_turn(
        self, contenders: Mapping[str, Contender], rounds: int
    ) -> dict[str, list[float]]:
        """Return the seconds that each contender took in each round; a first one is not counted.

        Each round starts with another contender: who runs first finds cold memory, and pays
        for all.
        """
        names = list(contenders)
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds + 1):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                contender = contenders[name]
                gc.collect()
                start = self.clock()
                await contender.run()
                elapsed = self.clock() - start
                if contender.undo is not None:
                    await contender.undo()
                if number:
                    seconds[name].append(elapsed)
        return seconds

    def calls_us(
        self, bare: Callable[[], object], mirrored: Callable[[], object]
    ) -> tuple[float, float]:
        """Return the medians of one bare and one mirrored call in microseconds, loops in turn."""
        times: tuple[list[float], list[float]] = ([], [])
        gc.disable()
        for turn in self._turns():
            call = mirrored if turn else bare
            start = self.clock()
            for _ in range(self.calls):
                call()
            times[turn].append(self.clock() - start)
        gc.enable()
        return self._medians(times)

    async def awaits_us(self, bare: Step, mirrored: Step) -> tuple[float, float]:
        """Return as `calls_us`, of calls that are awaited."""
        times: tuple[list[float], list[float]] = ([], [])
        gc.disable()
        for turn in self._turns():
            call = mirrored if turn else bare
            start = self.clock()
            for _ in range(self.calls):
                await call()
            times[turn].append(self.clock() - start)
        gc.enable()
        return self._medians(times)

    def _turns(self) -> Iterator[int]:
        for number in range(self.call_rounds + 1):
            yield from (0, 1) if number % 2 else (1, 0)

    def _medians(self, times: tuple[list[float], list[float]]) -> tuple[float, float]:
        # The first loop of each is there to warm up.
        bare, mirrored = (median(seconds[1:]) / self.calls * 1e6 for seconds in times)
        return bare, mirrored


@dataclass(frozen=True, slots=True)
class Imported:
    """What one import takes in a fresh process, and all modules that are loaded then."""

    seconds: float
    modules: Sequence[str]


def fresh_imports(names: Sequence[str], rounds: int, clock: Clock) -> list[Imported]:
    """Return for each module what its import takes, in turn, the median of fresh processes."""
    clock_name = "cpu" if clock is CLOCKS["cpu"] else "wall"
    seconds: dict[str, list[float]] = {name: [] for name in names}
    modules: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="coatcheck-") as compiled:
        # As an installed package has it: the first, uncounted round compiles.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name in names:
                run = subprocess.run(
                    [sys.executable, "-c", _IMPORT, name, clock_name],
                    capture_output=True,
                    text=True,
                    check=True,
                    env=environment,
                )
                took, modules[name] = json.loads(run.stdout)
                if number:
                    seconds[name].append(took)
    return [Imported(median(seconds[name]), modules[name]) for name in names]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
