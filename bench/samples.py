"""Text to measure with: seeded log lines, and where each character of a large text lies."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

RARE = "Connection Refused"
ABSENT = "segmentation fault"
FREQUENT = "error"
_RARE_COUNT = 3
_BLOCK_CHARS = 1_000_000

_LEVELS = ("INFO", "DEBUG", "WARN", "ERROR")
_ASCII = (
    "request finished",
    "cache miss for key user profile",
    "retry scheduled after timeout",
    "queue depth above the mark",
)
_FOREIGN = (
    "запрос завершён успешно",
    "ключ пользователя не найден в кэше",
    "请求已完成 缓存未命中",
    "délai dépassé, nouvelle tentative",
    "déploiement terminé 🚀 sans erreur",
)


@dataclass(frozen=True)
class Text:
    """A block of log lines, repeated. `RARE` stands in it three times in all."""

    block: str
    repeats: int

    @cached_property
    def encoded_block(self) -> bytes:
        return self.block.encode()

    @property
    def length_chars(self) -> int:
        return len(self.block) * self.repeats

    @property
    def size_bytes(self) -> int:
        return len(self.encoded_block) * self.repeats

    def payload(self) -> bytes:
        return b"".join(self._blocks())

    def text(self) -> str:
        return b"".join(self._blocks()).decode()

    def byte_of(self, char: int) -> int:
        """Return at which byte a character starts."""
        block, rest = divmod(char, len(self.block))
        return block * len(self.encoded_block) + len(self.block[:rest].encode())

    def _blocks(self) -> Iterator[bytes]:
        # In place of other ASCII, so that no character moves.
        marked = RARE.encode() + self.encoded_block[len(RARE) :]
        places = {self.repeats * number // _RARE_COUNT for number in range(_RARE_COUNT)}
        for number in range(self.repeats):
            yield marked if number in places else self.encoded_block


def log_text(size_bytes: int, *, ascii_only: bool = False, errors: bool = True) -> Text:
    """Return log lines of about `size_bytes`; without `ascii_only` a third are not ASCII."""
    source = random.Random(20)
    lines: list[str] = []
    length = 0
    longest = min(_BLOCK_CHARS, size_bytes)
    while length < longest:
        foreign = not ascii_only and source.random() < 0.35
        line = (
            f"2026-11-30T{source.randrange(24):02}:{source.randrange(60):02}:"
            f"{source.randrange(60):02}.{source.randrange(1000):03}Z "
            f"{source.choices(_LEVELS, (60, 15, 5, 20 if errors else 0))[0]} [gateway] "
            f"{source.choice(_FOREIGN if foreign else _ASCII)} "
            f"id={source.getrandbits(64):016x} dur={source.random() * 1000:.3f}ms\n"
        )
        lines.append(line)
        length += len(line)
    block = "".join(lines)
    return Text(block, max(1, round(size_bytes / len(block.encode()))))


def rows(count: int) -> list[dict[str, object]]:
    """Return flat records, as a database or an API would."""
    source = random.Random(21)
    return [
        {
            "id": number,
            "customer": f"customer-{source.randrange(5000)}",
            "status": source.choice(("paid", "late", "open")),
            "amount": round(source.random() * 500, 2),
            "city": source.choice(("Zürich", "Łódź", "Lyon", "大阪")),
            "note": None if source.random() < 0.4 else "checked by hand",
        }
        for number in range(count)
    ]


def wide_rows(count: int) -> list[dict[str, object]]:
    """Return records as `rows` does, of nine columns and about 170 bytes as JSON."""
    source = random.Random(24)
    found = rows(count)
    for row in found:
        day, second = source.randrange(28) + 1, source.randrange(60)
        row["createdAt"] = f"2026-11-{day:02}T08:15:{second:02}Z"
        row["isOpen"] = source.random() < 0.5
        row["quantity"] = source.randrange(1, 40)
    return found
