"""What a mirrored tool costs where nothing is offloaded, and what the import costs."""

import asyncio
from collections.abc import Callable

from measure import Row, Step, Timer, fresh_imports

from coatcheck import Bank, Mirror, mirror
from coatcheck.stores import MemoryStore

CHECK_US = 1.0
CHECK_DICT_US = 1.5
MIRRORED_US = 2.0
IMPORT_MS = 80.0

HEAVY = ("pydantic", "jmespath", "jsonpath_rfc9535", "platformdirs", "typer", "rich", "anyio")
"""What `import coatcheck` may not load; anyio is only reported."""
_MUST_NOT = HEAVY[:-1]

RESULTS: dict[str, object] = {
    "short str": "3 rows were changed",
    "10 KB ASCII str": "x" * 10_240,
    "small dict": {"id": 7, "name": "Zoë", "tags": ["a", "b"], "total": 12.5, "open": True},
}


async def pass_through(timer: Timer) -> list[Row]:
    bank = Bank(MemoryStore())
    found: list[Row] = []
    for name, result in RESULTS.items():
        found.append(await _checked(bank, name, result, timer))
        bare, mirrored = await asyncio.to_thread(_sync_us, bank, result, timer)
        found.append(_row(f"sync tool, {name}", bare, mirrored, MIRRORED_US))
        bare, mirrored = await _async_us(bank, result, timer)
        found.append(_row(f"async tool, {name}", bare, mirrored, MIRRORED_US))
    bare, mirrored = await asyncio.to_thread(_argument_us, bank, timer)
    found.append(_row("sync tool, short str, one str argument", bare, mirrored, MIRRORED_US))
    return found


async def _checked(bank: Bank, name: str, result: object, timer: Timer) -> Row:
    """Measure the check alone, as an adapter calls it, over a coroutine that does nothing."""
    owner = Mirror(bank)

    async def nothing() -> object:
        return result

    async def offload() -> object:
        return await owner.offload(result, "tool")

    async def bare() -> object:
        return await nothing()

    times = await timer.awaits_us(bare, offload)
    target = CHECK_DICT_US if isinstance(result, dict) else CHECK_US
    return _row(f"check alone, {name}", *times, target)


def _sync_us(bank: Bank, result: object, timer: Timer) -> tuple[float, float]:
    def tool() -> object:
        return result

    return timer.calls_us(tool, mirror(tool, bank))


async def _async_us(bank: Bank, result: object, timer: Timer) -> tuple[float, float]:
    async def tool() -> object:
        return result

    mirrored: Step = mirror(tool, bank)
    return await timer.awaits_us(tool, mirrored)


def _argument_us(bank: Bank, timer: Timer) -> tuple[float, float]:
    def tool(question: str) -> str:
        return question

    mirrored: Callable[[str], object] = mirror(tool, bank)
    text = "How many rows are late?"
    return timer.calls_us(lambda: tool(text), lambda: mirrored(text))


def _row(name: str, bare: float, mirrored: float, target_us: float) -> Row:
    over = mirrored - bare
    return Row(
        part="pass-through",
        name=name,
        measured=over,
        unit="µs over the bare call",
        limit=bare,
        target=f"≤ {target_us:g} µs",
        reached=over <= target_us,
    )


async def importing(rounds: int, timer: Timer) -> list[Row]:
    names = ("coatcheck", "asyncio")
    ours, gauge = await asyncio.to_thread(fresh_imports, names, rounds, timer.clock)
    heavy = [name for name in HEAVY if name in ours.modules]
    milliseconds = ours.seconds * 1000
    loaded = not set(heavy).isdisjoint(_MUST_NOT)
    return [
        Row(
            part="import",
            name="import coatcheck, fresh process",
            measured=milliseconds,
            unit="ms",
            limit=gauge.seconds * 1000,
            ratio=ours.seconds / gauge.seconds,
            target=f"≤ {IMPORT_MS:g} ms, none of {', '.join(_MUST_NOT)}",
            reached=milliseconds <= IMPORT_MS and not loaded,
            note="limit: import asyncio, for the pace of the machine; "
            f"loaded of these and anyio: {', '.join(heavy) or 'none'}",
        )
    ]
