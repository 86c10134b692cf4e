"""Runs steps, tasks and plans; what they share, and what they tell while they go on.

Below its executors an engine decides what runs when, and memory holds what came of it.
"""

from ._check import check_plan, check_task, known_dependencies
from ._checkpoint import Checkpoint
from ._context import RunContext
from ._engine import Engine, InProcess, Settled, Unit
from ._events import (
    EVENT,
    Chunk,
    Event,
    LogUpdate,
    PlanningUpdate,
    StepResult,
    TaskUpdate,
    ToolCallUpdate,
)
from ._plan import Step, Task, TaskPlan, plan_hash

__all__ = [
    "EVENT",
    "Checkpoint",
    "Chunk",
    "Engine",
    "Event",
    "InProcess",
    "LogUpdate",
    "PlanningUpdate",
    "RunContext",
    "Settled",
    "Step",
    "StepResult",
    "Task",
    "TaskPlan",
    "TaskUpdate",
    "ToolCallUpdate",
    "Unit",
    "check_plan",
    "check_task",
    "known_dependencies",
    "plan_hash",
]
