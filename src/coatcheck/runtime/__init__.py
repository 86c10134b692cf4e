"""Runs steps, tasks and plans; what they share, and what they tell while they go on.

Below its executors an engine decides what runs when, and memory holds what came of it.
"""

from ._agent import Agent, ArtifactsConfig
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
from ._means import StepOptions
from ._parallel import ParallelTaskExecutor
from ._plan import Step, Task, TaskPlan, plan_hash
from ._planner import Planner
from ._step import StepExecutor
from ._task import TaskExecutor
from ._tools import RunTool, StepTool

__all__ = [
    "EVENT",
    "Agent",
    "ArtifactsConfig",
    "Checkpoint",
    "Chunk",
    "Engine",
    "Event",
    "InProcess",
    "LogUpdate",
    "ParallelTaskExecutor",
    "Planner",
    "PlanningUpdate",
    "RunContext",
    "RunTool",
    "Settled",
    "Step",
    "StepExecutor",
    "StepOptions",
    "StepResult",
    "StepTool",
    "Task",
    "TaskExecutor",
    "TaskPlan",
    "TaskUpdate",
    "ToolCallUpdate",
    "Unit",
    "check_plan",
    "check_task",
    "known_dependencies",
    "plan_hash",
]
