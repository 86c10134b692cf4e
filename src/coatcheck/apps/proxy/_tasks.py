"""Calls that became tasks: which server each is of, and which tool.

In the handshake era a client asks for a task, and then for its result. In the modern one it is an
extension: the server decides, and what came of it stands in the answer to ``tasks/get``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ._channel import Log
from ._messages import Json
from ._upstream import Upstream

EXTENSION = "io.modelcontextprotocol/tasks"
"""By which a modern server and its client say that they know tasks."""
STATUS = "notifications/tasks"
"""Tells who listens to it what became of a task, in the modern era."""

_MOST = 10_000
"""Of one server."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A call that goes on without its request."""

    upstream: Upstream
    tool: str
    """Its own name there."""
    listed_as: str


class Tasks:
    """The tasks of one client."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._of: dict[str, dict[str, Task]] = {}

    def note(self, result: Json, task: Task) -> None:
        """Note whose a task is, where the result of a call is one.

        A server takes neither an id from another one, nor its room.
        """
        task_id = _created(result)
        if task_id is None:
            return
        known = self.find(task_id)
        name = task.upstream.name
        if known is not None and known.upstream is not task.upstream:
            self._log(f"{name}: its task has the id of one of {known.upstream.name}")
            return
        own = self._of.setdefault(name, {})
        if len(own) >= _MOST:
            own.pop(next(iter(own)))
        own[task_id] = task

    def find(self, task_id: object) -> Task | None:
        """Return a task, None where no call of this client is known to have become it."""
        if not isinstance(task_id, str):
            return None
        return next((own[task_id] for own in self._of.values() if task_id in own), None)

    def may_know(self, upstream: Upstream, task_ids: Sequence[str]) -> list[str]:
        """Return those of some tasks that a server may know: its own, and what is no one's."""
        each = [(task_id, self.find(task_id)) for task_id in task_ids]
        return [id_ for id_, task in each if task is None or task.upstream is upstream]


def outcome_of(method: str, result: Json) -> Json | None:
    """Return what came of a call, in the answer about its task; None where it is not there yet.

    >>> outcome_of("tasks/get", {"taskId": "1", "status": "completed", "result": {"content": []}})
    {'content': []}
    """
    if method == "tasks/result":
        return result
    found = result.get("result")
    return cast("Json", found) if isinstance(found, dict) else None


def with_outcome(method: str, result: Json, outcome: Json) -> Json:
    """Return the answer about a task with another outcome in it."""
    return outcome if method == "tasks/result" else {**result, "result": outcome}


def _created(result: Json) -> str | None:
    inner = result.get("task")
    if result.get("resultType") == "task":
        task_id = result.get("taskId")
    else:
        task_id = cast("Json", inner).get("taskId") if isinstance(inner, dict) else None
    return task_id if isinstance(task_id, str) else None
