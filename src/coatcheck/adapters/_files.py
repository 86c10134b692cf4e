"""The artifacts of a bank as files, for adapters whose framework has file tools.

A path is ``/<name>``, that is the newest artifact of the name, or ``/art:…``: any artifact by its
pointer, also with a selector.
"""

from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import cast

from ..bank import Bank
from ..content import dumps, loads, visible
from ..errors import (
    BinaryPayloadError,
    ExpiredPointerError,
    InvalidArgumentError,
    UnknownPointerError,
)
from ..records import Artifact, Match, Page

_MOST_FILES = 1_000
"""Artifacts that are looked at for a listing, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Some lines of a file."""

    text: str
    """Each line with its end. Of one that is too long its head, and where it goes on."""
    start_line: int
    """The first of them, from 0."""
    stop_line: int
    """The one behind the last of them."""
    total_lines: int


def name_of(path: str) -> str:
    """Return what a path says to a bank: a name, or a pointer."""
    return path.removeprefix("/")


async def files_in(
    bank: Bank, path: str, fits: Callable[[str], bool] | None = None
) -> dict[str, Artifact]:
    """Return the files at or below a path, among the newest thousand artifacts.

    Args:
        bank: Where to look.
        path: Of a folder or a file.
        fits: Told each by its path from there on; None takes all.
    """
    root = "/" + path.strip("/")
    folder = root.rstrip("/") + "/"
    found: dict[str, Artifact] = {}
    left = _MOST_FILES
    async with aclosing(bank.list()) as artifacts:
        async for artifact in artifacts:
            file = _path(artifact)
            inner = file.rpartition("/")[2] if file == root else file.removeprefix(folder)
            if inner != file and (fits is None or fits(inner)):
                found.setdefault(file, artifact)
            left -= 1
            if not left:
                break
    return found


def check_begins(offset: int, total: int, argument: str) -> None:
    """Check that a window begins within a file; of an empty one any is the empty one.

    Args:
        offset: Its first line, from 0.
        total: How many the file has.
        argument: What the model asked with.

    Raises:
        InvalidArgumentError: The file ends before.
    """
    if offset >= total > 0:
        raise InvalidArgumentError(
            f"There is no line {offset + 1} in a file of {total:,}.", f"Give a smaller {argument}."
        )


async def read(
    bank: Bank, path: str, offset: int, limit: int, limit_chars: int, *, argument: str = "offset"
) -> Window:
    """Return lines of a file, or rows of a frame or array, each as a line of JSON.

    Args:
        bank: Where it is.
        path: Of the file.
        offset: The first line, from 0.
        limit: The most lines, 1 or more.
        limit_chars: The most characters.
        argument: What the model asked with.

    Raises:
        InvalidArgumentError: The file ends before `offset`.
        CoatcheckError: As `Bank.read` raises.
    """
    name = name_of(path)
    try:
        page = await bank.read(name, offset, limit, unit="lines")
        text = str(page.content)
    except BinaryPayloadError:
        page = await bank.read(name, offset, limit, unit="rows")
        rows = _listed(loads(str(page.content).encode("utf-8", "surrogatepass")))
        text = "".join(f"{dumps(row).decode('utf-8', 'surrogatepass')}\n" for row in rows)
    check_begins(offset, page.total, argument)
    if len(text) > limit_chars:
        head = text[: text.rfind("\n", 0, limit_chars) + 1] or text[:limit_chars]
    else:
        head = text
    lines = head.count("\n") + (bool(head) and not head.endswith("\n"))
    if not head.endswith("\n") and (len(head) < len(text) or _is_cut(page)):
        head += await _where_it_goes_on(bank, name, page, len(head))
    return Window(
        text=visible(head), start_line=offset, stop_line=offset + lines, total_lines=page.total
    )


async def entries_in(bank: Bank, path: str) -> dict[str, Artifact | None]:
    """Return what a folder shows, in order: files, and folders, whose path ends in ``/``."""
    folder = f"/{path.strip('/')}/".replace("//", "/")
    entries: dict[str, Artifact | None] = {}
    for file, artifact in (await files_in(bank, path)).items():
        step, slash, _ = file.removeprefix(folder).partition("/")
        entries |= {f"{folder}{step}/": None} if slash else {file: artifact}
    return dict(sorted(entries.items()))


async def search(
    bank: Bank, path: str, fits: Callable[[str], bool] | None, text: str, limit: int
) -> list[tuple[str, int, str]]:
    """Return where a text stands: the file, the number of the line, and what is around it there.

    Args:
        bank: Where to look.
        path: As in `files_in`.
        fits: As in `files_in`.
        text: 1 to 200 characters, compared exactly.
        limit: The most places.

    Raises:
        CoatcheckError: As `Bank.search` raises.
    """
    places: list[tuple[str, int, str]] = []
    for file, artifact in (await files_in(bank, path, fits)).items():
        offset = None if artifact.length_chars is None else 0
        while offset is not None and len(places) < limit:
            found = await bank.search(artifact.pointer, text, offset, ignore_case=False)
            places.extend(
                (file, match.line_number, visible(_line_of(match))) for match in found.matches
            )
            offset = found.next_search_offset
    return places[:limit]


async def write(bank: Bank, path: str, content: str | bytes) -> None:
    """Bank what a file is from now on; bytes that are text as text.

    Raises:
        CoatcheckError: As `Bank.put` raises; the path is a pointer, or too long for a name.
    """
    if isinstance(content, bytes):
        with suppress(UnicodeDecodeError):
            content = content.decode()
    await bank.put(content, name=name_of(path), kind="file")


async def edit(
    bank: Bank, path: str, change: Callable[[str], tuple[str, int] | str]
) -> tuple[str, int] | str:
    """Return what `change` makes of a file's text, banked where that is a text and a count.

    Raises:
        InvalidArgumentError: The path is a pointer, or the file is no text.
        CoatcheckError: As `Bank.get` and `Bank.put` raise.
    """
    name = name_of(path)
    text = await bank.get(name, str)
    artifact = await bank.find(name)
    if artifact is None or artifact.name != name:
        raise InvalidArgumentError(
            "An artifact never changes.", "Write the new text to a path of its own."
        )
    changed = change(text)
    if not isinstance(changed, str):
        await write(bank, path, changed[0])
    return changed


async def payload(bank: Bank, path: str) -> bytes | None:
    """Return the bytes of a file, None where there is none.

    Raises:
        CoatcheckError: As `Bank.payload` raises.
    """
    try:
        return await bank.payload(name_of(path))
    except (UnknownPointerError, ExpiredPointerError):
        return None


def _path(artifact: Artifact) -> str:
    """Return where an artifact stands: by its name, where that can be a path."""
    name = artifact.name
    if name is None or name.startswith("~") or "\\" in name or name[1:2] == ":":
        return f"/{artifact.pointer}"
    has_steps = any(step in {"", ".", ".."} for step in name.split("/"))
    return f"/{artifact.pointer if has_steps else name}"


def _listed(rows: object) -> list[object]:
    """Return the rows of a page; a row that is longer than a page comes alone, as a text."""
    return cast("list[object]", rows) if isinstance(rows, list) else [rows]


def _is_cut(page: Page) -> bool:
    return page.has_more and page.next_offset is None


async def _where_it_goes_on(bank: Bank, name: str, page: Page, shown_chars: int) -> str:
    """Return a notice behind the head of a line."""
    artifact = await bank.find(name)
    line = f"line {page.offset + 1} goes on"
    if artifact is None or page.offset_chars is None or "#" in name:
        return f"\n[{line}: ask for less of it]\n"
    start = page.offset_chars + shown_chars
    return f"\n[{line}: read /{artifact.pointer}#char={start},{start + shown_chars}]\n"


def _line_of(match: Match) -> str:
    """Return the line of a match, or what a snippet has of it."""
    at = match.offset - match.snippet_offset
    start = match.snippet.rfind("\n", 0, at) + 1
    return match.snippet[start:].partition("\n")[0]
