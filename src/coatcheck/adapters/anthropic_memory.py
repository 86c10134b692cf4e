"""Anthropic's memory tool, over our memory and artifacts. Needs the `anthropic` extra."""

from collections.abc import Mapping
from typing import ClassVar

from ..bank import portal
from ..memory import AgentMemory
from ._sessions import failure_of

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import BetaCacheControlEphemeralParam

    from ._anthropic_memory import MemoryFiles
except ImportError as error:
    message = (
        "coatcheck.adapters.anthropic_memory needs an extra: pip install 'coatcheck[anthropic]'"
    )
    raise ImportError(message) from error

_ASKED: Mapping[str, tuple[str, ...]] = {
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class CoatcheckMemoryTool(BetaAbstractMemoryTool):
    """The memory tool of `Anthropic`, over the entries of a memory and the artifacts of its bank.

    ``/memories/shared/<key>`` is what `memory_write` writes under that key, and
    ``/memories/artifacts/<name or pointer>`` what is banked, to be read only.

    Args:
        memory: Whoever shares it reads and writes the same.
        cache_control: As the SDK's own takes.

    >>> CoatcheckMemoryTool(AgentMemory()).to_dict()
    {'type': 'memory_20250818', 'name': 'memory'}
    """

    is_bounded: ClassVar[bool] = True
    """Whether it takes pointers as text, and bounds its replies by itself: it is not mirrored."""

    def __init__(
        self, memory: AgentMemory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory)

    def view(self, command: object) -> str:
        """Do what a command says; all of them are done here."""
        return portal().run(_answer(self._files, command))

    create = str_replace = insert = delete = rename = view


class AsyncCoatcheckMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool of `AsyncAnthropic`; all else is as for `CoatcheckMemoryTool`.

    Args:
        memory: Whoever shares it reads and writes the same.
        cache_control: As the SDK's own takes.
    """

    is_bounded: ClassVar[bool] = True

    def __init__(
        self, memory: AgentMemory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory)

    async def view(self, command: object) -> str:
        """Do what a command says; all of them are done here."""
        return await _answer(self._files, command)

    create = str_replace = insert = delete = rename = view


async def _answer(files: MemoryFiles, command: object) -> str:
    """Return the reply to a command.

    Raises:
        ToolError: It cannot be done; the runner makes a failed result of it.
    """
    name = str(getattr(command, "command", None))
    given = [getattr(command, asked, None) for asked in _ASKED[name]]
    try:
        return str(await getattr(files, name)(*given))
    except Exception as error:  # a stranger's store raises anything
        raise ToolError(str(failure_of("memory", error))) from error
