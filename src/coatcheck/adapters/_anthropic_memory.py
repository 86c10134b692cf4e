"""What the commands of Anthropic's memory tool do: entries and artifacts as files."""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

from ..content import dumps, visible
from ..errors import InvalidArgumentError, UnknownPointerError, shown
from ..memory import AgentMemory, MemoryEntry, memory_keys
from ..records import is_pointer
from ._files import Window, check_begins, files_in, read

_ROOT, _SHARED, _ARTIFACTS = "/memories", "/memories/shared", "/memories/artifacts"
_LISTED = 200
"""Files of a folder that are listed, the newest."""
_MOST_LINES = 5_000
"""Lines of one view: each has a number in front."""
_KILO = 1_024
_RANGE = "view_range"
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of characters that a path cannot hold: none of them is seen."""


class MemoryFiles:
    """Memory as files: ``shared/<key>`` is an entry, ``artifacts/<name or pointer>`` an artifact.

    Whatever a path is, it is a key below ``shared:``, or what a bank is asked for: it leads to no
    file, and to no other namespace or scope.

    Args:
        memory: What they are of.
    """

    def __init__(self, memory: AgentMemory) -> None:
        self._memory = memory
        self._page_chars = memory.bank.limits.page_chars

    async def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """Return lines of a file, or what is in a folder."""
        path = _checked(path)
        first, asked = _lines_asked(view_range)
        limit = min(asked, _MOST_LINES)
        if path.startswith(_ARTIFACTS + "/"):
            name = path.removeprefix(_ARTIFACTS)
            window = await self._read(name, first, limit)
            return _numbered(path, window, asked)
        entry = None if path in (_ROOT, _SHARED, _ARTIFACTS) else await self._memory.get(_key(path))
        if entry is None:
            return await self._listing(path)
        if entry.pointer is not None:
            name = f"/{entry.pointer}"
            window = await self._read(name, first, limit)
        else:
            lines = _lines(_text(entry))
            check_begins(first - 1, len(lines), _RANGE)
            shown_lines = lines[first - 1 :][:limit]
            stop = first - 1 + len(shown_lines)
            text = "".join(f"{line}\n" for line in shown_lines)
            window = Window(text=text, start_line=first - 1, stop_line=stop, total_lines=len(lines))
        return _numbered(path, window, asked)

    async def _read(self, name: str, first: int, limit: int) -> Window:
        bank = self._memory.bank
        return await read(bank, name, first - 1, limit, self._page_chars, argument=_RANGE)

    async def create(self, path: str, file_text: str) -> str:
        """Write an entry that is not there yet; a pointer stands for what is banked."""
        key = _key(_checked(path))
        if await self._memory.has(key):
            raise InvalidArgumentError(
                f"File {path} already exists", "Edit it, or choose another path."
            )
        value: object = _asked("file_text", file_text)
        if is_pointer(file_text):
            value = await self._pointed(file_text)
        await self._memory.set(key, value, source="memory", title=key.partition(":")[2])
        return f"File created successfully at: {path}"

    async def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text that stands once in an entry."""

        def changed(text: str) -> str:
            count = text.count(old_str) if _asked("old_str", old_str) else 0
            if count != 1:
                raise InvalidArgumentError(
                    f"No replacement was performed: old_str stands {count:,} times in {path}",
                    "Give a text that stands there exactly once.",
                )
            return text.replace(old_str, _asked("new_str", new_str))

        text = await self._edit(path, changed)
        at = text.find(new_str)
        first = max(text.count("\n", 0, at) - 2, 0)
        lines = _lines(text)[first : first + new_str.count("\n") + 5]
        return f"The memory file has been edited.\n{_with_numbers(lines, first + 1)}"

    async def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Insert a text behind a line of an entry, 0 for its start."""

        def changed(text: str) -> str:
            lines = _lines(text)
            if type(insert_line) is not int or not 0 <= insert_line <= len(lines):
                raise InvalidArgumentError(
                    f"insert_line must be within 0 and {len(lines):,}, got {shown(insert_line)}",
                    "Give the number of the line behind which to insert.",
                )
            lines.insert(insert_line, _asked("insert_text", insert_text).rstrip("\n"))
            return "".join(f"{line}\n" for line in lines)

        await self._edit(path, changed)
        return f"The file {path} has been edited."

    async def delete(self, path: str) -> str:
        """Remove an entry. What it held stays banked."""
        if not await self._memory.delete(_key(_checked(path))):
            raise _missing(path)
        return f"Successfully deleted {path}"

    async def rename(self, old_path: str, new_path: str) -> str:
        """Move an entry to a path where there is none."""
        old, new = _key(_checked(old_path)), _key(_checked(new_path))
        entry = await self._entry(old_path)
        if await self._memory.has(new):
            raise InvalidArgumentError(
                f"The destination {new_path} already exists", "Choose another path."
            )
        value = entry.value if entry.pointer is None else await self._pointed(entry.pointer)
        title, described = new.partition(":")[2], entry.description
        await self._memory.set(new, value, source=entry.source, title=title, description=described)
        await self._memory.delete(old)
        return f"Successfully renamed {old_path} to {new_path}"

    async def _pointed(self, pointer: str) -> object:
        """Return an artifact, or what its selector picks."""
        bank = self._memory.bank
        found = await bank.get(pointer) if "#" in pointer else await bank.find(pointer)
        if found is None:
            raise UnknownPointerError(pointer)
        return found

    async def _edit(self, path: str, change: Callable[[str], str]) -> str:
        entry = await self._entry(path)
        value = await self._memory.value_of(entry)
        if not isinstance(value, str):
            raise InvalidArgumentError(
                f"{path} is a value and no text", "Write a text to another path."
            )
        text = change(value)
        title, described = entry.title, entry.description
        await self._memory.set(entry.key, text, source="memory", title=title, description=described)
        return text

    async def _entry(self, path: str) -> MemoryEntry:
        entry = await self._memory.get(_key(_checked(path)))
        if entry is None:
            raise _missing(path)
        return entry

    async def _listing(self, path: str) -> str:
        files: dict[str, int] = {}
        if path != _ARTIFACTS:
            entries = await self._memory.list(key_prefix=memory_keys.shared(""))
            names = {each.key.partition(":")[2]: each.size_bytes for each in reversed(entries)}
            files |= {f"{_SHARED}/{name}": size for name, size in names.items()}
        if path in (_ROOT, _ARTIFACTS):
            found = await files_in(self._memory.bank, "/", lambda _: True)
            # What an entry holds is listed as that.
            named = {name: each for name, each in found.items() if each.kind != "memory"}
            files |= {f"{_ARTIFACTS}{name}": each.size_bytes for name, each in named.items()}
        inside = {name: size for name, size in files.items() if name.startswith(f"{path}/")}
        if not inside and path not in (_ROOT, _SHARED, _ARTIFACTS):
            raise _missing(path)
        named_files = [name for name in inside if _is_path(name)][:_LISTED]
        lines = [f"{_size(inside[name])}\t{name}" for name in named_files]
        left = len(inside) - len(lines)
        more = [f"[{left:,} more are not listed]"] if left else []
        return "\n".join([f"Files in {path}:", *lines, *more])


def _checked(path: object) -> str:
    """Return a path without a slash at its end.

    Raises:
        InvalidArgumentError: It is none, or might be read as another by somebody else.
    """
    if isinstance(path, str) and _is_path(path.rstrip("/")):
        return path.rstrip("/")
    raise InvalidArgumentError(
        f"{shown(path)} is no path of memory",
        f"Give a path like {_SHARED}/notes.md, without dots as a step and without escapes.",
    )


def _is_path(path: str) -> bool:
    steps = path.split("/")
    return (
        steps[:2] == ["", "memories"]
        and not {"", ".", ".."} & {*steps[1:]}
        and "\\" not in path
        and unquote(path) == path
        and not any(unicodedata.category(each) in _UNSEEN for each in path)
    )


def _key(path: str) -> str:
    """Return the key of the entry at a path.

    Raises:
        InvalidArgumentError: There are no entries at such paths.
    """
    if path.startswith(f"{_SHARED}/"):
        return memory_keys.shared(path.removeprefix(f"{_SHARED}/"))
    is_kept = path == _ARTIFACTS or path.startswith(f"{_ARTIFACTS}/")
    raise InvalidArgumentError(
        f"{shown(path)} can only be read" if is_kept else f"{shown(path)} is no file of memory",
        f"Write to a path like {_SHARED}/notes.md.",
    )


def _missing(path: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{shown(path)} does not exist", f"View {_ROOT} to see what does.")


def _asked(name: str, text: object) -> str:
    if isinstance(text, str):
        return text
    raise InvalidArgumentError(f"{name} must be a text, got {shown(text)}", f"Give {name} as text.")


def _lines_asked(view_range: Sequence[int] | None) -> tuple[int, int]:
    """Return the first line that is asked for, from 1, and how many.

    Raises:
        InvalidArgumentError: The range is none.
    """
    if view_range is None:
        return 1, sys.maxsize
    given: list[object] = [*view_range] if isinstance(view_range, list) else []
    numbers = [each for each in given if type(each) is int]
    if len(given) == len(numbers) == 2 and numbers[0] > 0:  # noqa: PLR2004 - it is a pair
        first, last = numbers
        if last == -1:
            return first, sys.maxsize
        if last >= first:
            return first, last - first + 1
    raise InvalidArgumentError(
        f"view_range must be two lines, got {shown(view_range)}",
        "Give the first line from 1 and the last, or -1 for all that follow.",
    )


def _text(entry: MemoryEntry) -> str:
    return visible(entry.value if isinstance(entry.value, str) else dumps(entry.value).decode())


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _with_numbers(lines: Iterable[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _numbered(path: str, window: Window, asked: int) -> str:
    told = _with_numbers(_lines(window.text), window.start_line + 1)
    left = window.total_lines - window.stop_line
    if left > 0 and window.stop_line - window.start_line < asked:
        told += f"\n[{left:,} more lines; go on with view_range [{window.stop_line + 1}, -1]]"
    return f"{path}, {window.total_lines:,} lines:\n{told}"


def _size(size: float) -> str:
    for unit in ("B", "K", "M"):
        if size < _KILO:
            return f"{size:.4g}{unit}"
        size /= _KILO
    return f"{size:.4g}G"
