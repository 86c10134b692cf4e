"""What a model may call, and how errors reach it."""

from ._artifacts import artifact_tools
from ._failure import Failure, as_failure, is_failure
from ._memory import memory_tools
from ._plans import plan_tools
from ._poll import poll_tools
from ._retrieve import retrieval_tools
from ._tool import Tool

__all__ = [
    "Failure",
    "Tool",
    "artifact_tools",
    "as_failure",
    "is_failure",
    "memory_tools",
    "plan_tools",
    "poll_tools",
    "retrieval_tools",
]
