"""Answers of deepagents' file tools: for `deepagents`, and with its extra only."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from deepagents.backends import protocol, utils
from pydantic import ValidationError, validate_call

from ..bank import misfit, portal
from ..records import Artifact
from ..tools import Failure, as_failure
from ._files import Window
from ._sessions import failure_of

_Found = TypeVar("_Found")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def checked(
    kind: Callable[..., _Result],
) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Return a decorator: the method answers with an error where an argument is of another type.

    An agent checks what its model gives to file tools. A tool of a host's own, which hands its
    arguments on to them, may not.

    Args:
        kind: The class of the answer; it takes `error`.
    """

    def decorate(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        validated: Callable[..., _Result] = validate_call(method)
        signature = inspect.signature(method)

        @wraps(method)
        def call(*args: _Given.args, **given: _Given.kwargs) -> _Result:
            named = signature.bind(*args, **given).arguments  # so that errors name them
            try:
                return validated(**named)
            except ValidationError as error:
                return kind(error=_told(as_failure(misfit(error, "the arguments"))))

        return call

    return decorate


def answer(
    kind: Callable[..., _Result],
    work: Coroutine[object, object, _Found],
    fields: Callable[[_Found], dict[str, Any]],
) -> _Result:
    """Return an answer with what `fields` makes of what was found, or with the error.

    Args:
        kind: The class of the answer; it takes `error`.
        work: Finds it.
        fields: Returns the arguments of `kind`.
    """
    try:
        return kind(**fields(portal().run(work)))
    except utils.InvalidGlobPatternError as error:
        return kind(error=str(error))
    except Exception as error:  # noqa: BLE001 - a stranger's store raises anything
        return kind(error=_told(failure_of("a file tool", error)))


def fitting(pattern: str | None) -> Callable[[str], bool] | None:
    """Return what tells which paths a pattern fits; None where there is no pattern."""

    def fits(path: str) -> bool:  # a pattern that is none is told of where it is used
        return utils.compile_grep_include_glob(pattern)(path)

    return None if pattern is None else fits


def infos(files: Mapping[str, Artifact | None]) -> list[protocol.FileInfo]:
    """Return the facts of files and folders."""
    return [_info(file, artifact) for file, artifact in files.items()]


def matches(places: Sequence[tuple[str, int, str]], limit: int) -> dict[str, Any]:
    """Return what a search found, of which there may be one more than the limit."""
    found = [
        protocol.GrepMatch(path=file, line=line, text=text) for file, line, text in places[:limit]
    ]
    return {"matches": found, "truncated": len(places) > limit}


def text(content: str) -> protocol.FileData:
    """Return text as the content of a file."""
    return protocol.FileData(content=content, encoding="utf-8")


def window(found: Window) -> dict[str, Any]:
    """Return a window of a file; of an empty file it has no lines."""
    if not found.text:
        return {"file_data": text("")}
    has_more = found.stop_line < found.total_lines
    return {
        "file_data": text(found.text),
        "total_lines": found.total_lines,
        "start_line": found.start_line + 1,
        "end_line": found.stop_line,
        "next_offset": found.stop_line if has_more else None,
    }


def _told(failure: Failure) -> str:
    return f"{failure.message.removesuffix('.')}. {failure.hint}".strip()


def _info(file: str, artifact: Artifact | None) -> protocol.FileInfo:
    """Return the facts of a file, or of a folder where there is no artifact."""
    if artifact is None:
        return protocol.FileInfo(path=file, is_dir=True)
    stored_at = artifact.stored_at.isoformat()
    return protocol.FileInfo(
        path=file, is_dir=False, size=artifact.size_bytes, modified_at=stored_at
    )
