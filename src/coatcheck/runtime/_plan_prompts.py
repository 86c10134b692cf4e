"""What a planner's model is told, and the tools by which it plans."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..content import dumps
from ..tools import Tool

_TOLD_CHARS = 300


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_STEP = {
    "type": "object",
    "properties": {
        "id": _TEXT,
        "instructions": _TEXT,
        "depends_on": {**_TEXTS, "description": "Steps of this task, or inputs."},
        "tools": {**_TEXTS, "description": "Tools it may call; left out, all."},
        "output_schema": {"type": "object", "description": "JSON schema of its result."},
        "mode": {
            **_TEXT,
            "enum": ["discover", "process", "aggregate"],
            "description": "process runs once for each item of the list its first dependency gave.",
        },
        "per_item_instructions": {**_TEXT, "description": "With {field} or {item}."},
        "per_item_schema": {"type": "object"},
    },
    "required": ["id", "instructions"],
}
_TASK_FIELDS: Mapping[str, Any] = {
    "id": _TEXT,
    "title": _TEXT,
    "description": _TEXT,
    "steps": {"type": "array", "items": _STEP, "minItems": 1},
}

CREATE_TASK = Definition(
    "create_task",
    "Hand in the plan: one task with its steps.",
    {"type": "object", "properties": _TASK_FIELDS, "required": ["title", "steps"]},
)
TASK = Definition(
    "add_task",
    "Add a task to the plan, after those that it depends on.",
    {
        "type": "object",
        "properties": {
            **_TASK_FIELDS,
            "depends_on": {**_TEXTS, "description": "Tasks added before, or inputs."},
        },
        "required": ["id", "title", "steps"],
    },
)
REMOVE_TASK = Definition(
    "remove_task",
    "Take a task out of the plan again.",
    {"type": "object", "properties": {"id": _TEXT}, "required": ["id"]},
)
FINISH_PLAN = Definition(
    "finish_plan",
    "Hand in the plan, when all tasks are added.",
    {"type": "object", "properties": {"title": _TEXT}, "required": ["title"]},
)

REMINDER = "Go on by calling a tool: text alone makes no plan."

_ONE_TASK = """\
You plan how an objective is reached, and do none of it yourself. Call `create_task` once, with \
all steps.

"""
_TASKS = """\
You plan how an objective is reached, and do none of it yourself. Call `add_task` for each task, \
in the order in which they depend on each other, then `finish_plan`. `remove_task` takes one back.

"""
_RULES = """\
# Rules
- A task is a goal, its steps the way there. A step is a talk of about three turns with a model \
that has tools and sees the results of what it depends on.
- Ids are snake_case and unique in the plan; those of steps begin with the id of their task.
- Depend only on what is needed: the rest runs side by side.
- Instructions are short and whole, and name the tools to call.
- The last step gives what was asked for, in the output schema where there is one. Of several \
tasks, a last one brings the others together.
- Large values have pointers (`art:…`, `ps-…`). Write pointers into instructions as they are, \
never what stands behind them.
- Where something is refused, correct what is named and call the tool again.
"""
_MAY_LOOK = "- Look with the other tools at what the plan rests on, before you plan.\n"


def planning_prompt(*, is_single: bool, may_look: bool) -> str:
    """Return the system prompt of a planner."""
    return (_ONE_TASK if is_single else _TASKS) + _RULES + (_MAY_LOOK if may_look else "")


def planning_message(
    objective: str,
    *,
    tools: Sequence[Tool],
    inputs: Iterable[str],
    schema: Mapping[str, Any] | None,
) -> str:
    """Return the first message of a planner's model.

    Args:
        objective: What is wanted.
        tools: That steps may call.
        inputs: Keys of inputs; their values are not shown.
        schema: Of the result; None where there is none.
    """
    listed = [_tool_line(tool) for tool in tools] or ["none"]
    keys = [f"- input:{key}" for key in inputs] or ["none"]
    wanted = "none" if schema is None else dumps(schema).decode("utf-8", "replace")
    return "\n".join(
        [
            f"# Objective\n{objective}\n",
            "# Tools of steps (* required)",
            *listed,
            "",
            "# Inputs",
            *keys,
            "",
            f"# Output schema\n{wanted}",
        ]
    )


def _tool_line(tool: Tool) -> str:
    required = tool.parameters.get("required", ())
    arguments = ", ".join(
        f"{name}*" if name in required else name for name in tool.parameters.get("properties", {})
    )
    told = " ".join(tool.description.split())[:_TOLD_CHARS]
    return f"- {tool.name}({arguments})" + (f": {told}" if told else "")
