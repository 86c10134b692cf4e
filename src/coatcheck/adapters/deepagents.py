"""A bank as a folder of deepagents, for its file tools. Needs the `deepagents` extra."""

from functools import partial
from typing import Any

from ..bank import Bank, BlockingBank
from ..records import Limits
from . import _files
from ._sessions import Sessions

try:
    from deepagents.backends import protocol, utils
    from langgraph.config import get_config

    from . import _deepagents_answers as answers
except ImportError as error:
    message = "coatcheck.adapters.deepagents needs an extra: pip install 'coatcheck[deepagents]'"
    raise ImportError(message) from error

PATHS = {
    **dict.fromkeys(("ls", "glob", "grep"), ("path",)),
    **dict.fromkeys(("read_file", "write_file", "edit_file"), ("file_path",)),
}
"""The file tools, and which of their arguments is a path: a pointer there names a file."""

_MOST_MATCHES = 1_000
_MOST_GROWTH_CHARS = 32 * 1024 * 1024
"""By how much one edit may lengthen a file: a short call could fill any memory."""


class BankBackend(protocol.BackendProtocol):
    """The artifacts of a bank as files: ``/<name>``, and ``/art:…`` by pointer and selector.

    A file is the newest artifact of its name, among the newest thousand of the bank. No artifact
    changes: what is written or edited is a new one. None is deleted. The async methods, which are
    inherited, run these in a thread.

    Args:
        bank: Where the artifacts are; it stays its owner's. Each thread of an agent has a scope of
            its own there, as with the middleware of `coatcheck.adapters.langchain`.
        limits: How long a window is at most; None takes the bank's.

    >>> from coatcheck.stores import MemoryStore
    >>> files = BankBackend(Bank(MemoryStore()))
    >>> files.write("/notes/a.md", "one").path, [each["path"] for each in files.ls("/").entries]
    ('/notes/a.md', ['/notes/'])
    """

    def __init__(self, bank: Bank | BlockingBank, *, limits: Limits | None = None) -> None:
        self._sessions = Sessions(bank, limits)

    def bank_for(self, thread_id: object = None) -> Bank:
        """Return the bank that the tools of a thread use; None is a run without one."""
        return self._sessions.of(None if thread_id is None else str(thread_id)).bank

    @answers.checked(protocol.LsResult)
    def ls(self, path: str) -> protocol.LsResult:
        """Return the files and folders in a folder."""
        found = _files.entries_in(self._bank(), path)
        return answers.answer(protocol.LsResult, found, lambda it: {"entries": answers.infos(it)})

    @answers.checked(protocol.ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> protocol.ReadResult:
        """Return a window of lines, or of the rows of a frame or array."""
        if limit <= 0:
            return protocol.ReadResult(file_data=answers.text(""), no_lines_requested=True)
        chars = self._sessions.of().mirror.limits.page_chars
        work = _files.read(self._bank(), file_path, max(offset, 0), limit, chars)
        return answers.answer(protocol.ReadResult, work, answers.window)

    @answers.checked(protocol.GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> protocol.GlobResult:
        """Return the files that a pattern fits, the newest first."""
        work = _files.files_in(self._bank(), path or "/", answers.fitting(pattern))
        return answers.answer(
            protocol.GlobResult, work, lambda found: {"matches": answers.infos(found)}
        )

    @answers.checked(protocol.GrepResult)
    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> protocol.GrepResult:
        """Return the lines in which a text stands; of a long one what is around it."""
        most = _MOST_MATCHES if max_count is None else max_count
        work = _files.search(self._bank(), path or "/", answers.fitting(glob), pattern, most + 1)
        return answers.answer(protocol.GrepResult, work, partial(answers.matches, limit=most))

    @answers.checked(protocol.WriteResult)
    def write(self, file_path: str, content: str | bytes) -> protocol.WriteResult:
        """Bank what the file is from now on."""
        work = _files.write(self._bank(), file_path, content)
        return answers.answer(protocol.WriteResult, work, lambda _: {"path": file_path})

    @answers.checked(protocol.EditResult)
    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # noqa: FBT001, FBT002 - as in the protocol
    ) -> protocol.EditResult:
        """Bank the text of a file anew, with some of it replaced."""

        def change(text: str) -> tuple[str, int] | str:
            longer = len(new_string) - len(old_string)
            if longer > 0 and text.count(old_string) * longer > _MOST_GROWTH_CHARS:
                return (
                    f"Error: this would make the file more than {_MOST_GROWTH_CHARS:,} characters"
                    " longer. Replace fewer places, or give a shorter new_string."
                )
            return utils.perform_string_replacement(text, old_string, new_string, replace_all)

        def fields(done: tuple[str, int] | str) -> dict[str, Any]:
            if isinstance(done, str):
                return {"error": done}
            return {"path": file_path, "occurrences": done[1]}

        work = _files.edit(self._bank(), file_path, change)
        return answers.answer(protocol.EditResult, work, fields)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[protocol.FileUploadResponse]:
        """Bank what files are from now on."""
        return [
            protocol.FileUploadResponse(path, self.write(path, content).error)
            for path, content in files
        ]

    def download_files(self, paths: list[str]) -> list[protocol.FileDownloadResponse]:
        """Return what files are, byte for byte."""

        def fields(content: bytes | None) -> dict[str, Any]:
            return {"error": protocol.FILE_NOT_FOUND} if content is None else {"content": content}

        response = protocol.FileDownloadResponse
        return [
            answers.answer(partial(response, path), _files.payload(self._bank(), path), fields)
            for path in paths
        ]

    def _bank(self) -> Bank:
        try:
            return self.bank_for(get_config().get("configurable", {}).get("thread_id"))
        except RuntimeError:  # no agent runs
            return self.bank_for()
