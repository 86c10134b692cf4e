"""What a model may call, and how errors reach it."""

from ._artifacts import artifact_tools
from ._failure import Failure, as_failure, is_failure
from ._function import as_function
from ._memory import memory_tools
from ._nameless import check_unnamed, without_neighbours
from ._plans import plan_tools
from ._poll import poll_tools
from ._retrieve import retrieval_tools
from ._served import (
    META_SCOPE,
    RESOURCE_DESCRIPTION,
    RESOURCE_TEMPLATE,
    read_artifact_resource,
    stated_scope,
)
from ._tool import Tool

__all__ = [
    "META_SCOPE",
    "RESOURCE_DESCRIPTION",
    "RESOURCE_TEMPLATE",
    "Failure",
    "Tool",
    "artifact_tools",
    "as_failure",
    "as_function",
    "check_unnamed",
    "is_failure",
    "memory_tools",
    "plan_tools",
    "poll_tools",
    "read_artifact_resource",
    "retrieval_tools",
    "stated_scope",
    "without_neighbours",
]
