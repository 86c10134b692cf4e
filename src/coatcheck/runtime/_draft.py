"""A plan in the making: the tools by which a model makes it, and what is refused of it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from ..content import dumps, visible
from ..errors import InvalidArgumentError, InvalidPlanError, shown
from ..memory import AgentMemory
from ..tools import Tool
from ._check import check_depth, check_plan
from ._events import LogUpdate, PlanningUpdate, Telling
from ._merged import Emit
from ._plan import Task, TaskPlan
from ._plan_prompts import FINISH_PLAN, REMOVE_TASK, TASK, Definition
from ._schema import output_schema
from ._task import known_inputs
from ._tools import parsed_arguments

NODE = "planner"
"""What events of planning name."""
REFUSALS = 3
"""Times that one task may be refused, before there is no plan."""

_STATE = frozenset(
    {"completed", "failed", "error", "start_time", "end_time", "logs", "items", "items_failed"}
)
_MISTAKES = 8
_MISTAKE_CHARS = 200

Reading = Callable[[Mapping[str, Any]], Awaitable[dict[str, object]]]


class Draft:
    """The plan as far as it stands.

    Args:
        emit: Tells of each task that comes or goes.
        memory: Of the run; what it holds as inputs may be depended on.
        inputs: Keys of the inputs that are given.
        tools: Names of tools that steps may be restricted to.
        max_steps: Longest chain of steps in a task.
    """

    def __init__(
        self,
        emit: Emit,
        memory: AgentMemory,
        *,
        inputs: Collection[str],
        tools: Collection[str],
        max_steps: int,
    ) -> None:
        self.plan = TaskPlan()
        self.is_finished = False
        self.given_up: str | None = None
        """Why there will be no plan."""
        self._emit = emit
        self._telling = Telling()
        self._memory = memory
        self._inputs = dict.fromkeys(inputs)
        self._tools = tools
        self._max_steps = max_steps
        self._refusals: Counter[str] = Counter()

    def tools(self, create: Definition | None = None) -> list[Tool]:
        """Return what a model makes the plan with.

        Args:
            create: The one tool that makes a plan of one task; None for those that make one of
                several.
        """
        if create is not None:
            return [self._tool(create, self._create)]
        return [
            self._tool(TASK, self._add),
            self._tool(REMOVE_TASK, self._remove),
            self._tool(FINISH_PLAN, self._finish),
        ]

    async def refuse(self, what: str, problems: Sequence[str]) -> dict[str, object]:
        """Return the reply to what cannot stand, and end the plan where it was refused too often.

        Args:
            what: What is counted, as the id of a task.
            problems: What is wrong with it.
        """
        await self._emit(
            PlanningUpdate(phase="validation", status="failed", content="; ".join(problems))
        )
        self._refusals[what] += 1
        if self._refusals[what] == REFUSALS:
            self.given_up = f"{what} was refused {REFUSALS} times: {'; '.join(problems)}"
        return {"status": "validation_failed", "errors": list(problems)}

    def _tool(self, definition: Definition, work: Reading) -> Tool:
        async def call(arguments: Mapping[str, Any] | str) -> str:
            given: Mapping[str, Any] = {}
            try:
                given = parsed_arguments(arguments)
                reply = await work(given)
            except (InvalidPlanError, InvalidArgumentError) as error:
                problems = error.problems if isinstance(error, InvalidPlanError) else [str(error)]
                id_ = given.get("id")
                what = definition.name if id_ is None else f"{definition.name} {shown(id_)}"
                reply = await self.refuse(what, problems)
            return visible(dumps(reply).decode("utf-8", "surrogatepass"))

        # Each builds on those before it.
        return Tool(
            definition.name, definition.description, definition.parameters, call, parallel=False
        )

    async def _create(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        task = await self._taken(arguments)
        self.plan.title = task.title
        self.is_finished = True
        steps = [step.id for step in task.steps]
        return {"status": "created", "id": task.id, "title": task.title, "steps": steps}

    async def _add(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        task = await self._taken(arguments)
        return {
            "status": "task_added",
            "id": task.id,
            "title": task.title,
            "steps": len(task.steps),
            "tasksSoFar": len(self.plan.tasks),
        }

    async def _remove(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        id_ = arguments.get("id", arguments.get("task_id"))
        task = next((each for each in self.plan.tasks if each.id == id_), None)
        if task is None:
            known = ", ".join(shown(each.id) for each in self.plan.tasks[-_MISTAKES:]) or "none"
            raise InvalidPlanError([f"there is no task {shown(id_)} (the last tasks: {known})"])
        waiting = [each.id for each in self.plan.tasks if task.id in each.depends_on]
        if waiting:
            raise InvalidPlanError(
                [f"task {shown(waiting[0])} depends on {shown(task.id)}: remove it first"]
            )
        self.plan.tasks.remove(task)
        await self._emit(self._telling.task_update("task_removed", task))
        return {"status": "task_removed", "id": task.id, "tasksSoFar": len(self.plan.tasks)}

    async def _finish(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        title = arguments.get("title")
        if title is not None and not isinstance(title, str):
            raise InvalidPlanError([f"title must be text, got {shown(title)}"])
        await self._check(self.plan)
        self.plan.title = title or ""
        self.is_finished = True
        return {
            "status": "plan_finished",
            "title": self.plan.title,
            "tasks": len(self.plan.tasks),
            "totalSteps": sum(len(task.steps) for task in self.plan.tasks),
        }

    async def _taken(self, arguments: Mapping[str, Any]) -> Task:
        """Return a task that was taken into the plan."""
        task = _task_of(arguments)
        dropped = list(_without_bad_schemas(task))
        await self._check(self.plan.model_copy(update={"tasks": [*self.plan.tasks, task]}))
        self.plan.tasks.append(task)
        for said in dropped:
            await self._emit(LogUpdate(node_id=NODE, content=said, severity="warning"))
        await self._emit(self._telling.task_update("task_planned", task))
        return task

    async def _check(self, plan: TaskPlan) -> None:
        known = await known_inputs(plan.tasks, self._inputs, self._memory)
        check_plan(plan, inputs=known, tools=self._tools)
        for task in plan.tasks:
            check_depth("step", task.steps, max_steps=self._max_steps)


def _task_of(arguments: Mapping[str, Any]) -> Task:
    """Return the task that a model wrote down.

    Raises:
        InvalidPlanError: It is none. What is wrong is named by its place.
    """
    written = _planned(arguments)
    if isinstance(written.get("steps"), list):
        written["steps"] = [
            _planned(cast("Mapping[str, Any]", step)) if isinstance(step, Mapping) else step
            for step in written["steps"]
        ]
    try:
        return Task.model_validate(written)
    except ValidationError as error:
        raise InvalidPlanError(list(_mistakes(error))) from error


def _planned(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a planner has to say of a task or step: not how far it is, and no null."""
    return {
        name: value
        for name, value in written.items()
        if value is not None and to_snake(name) not in _STATE
    }


def _mistakes(error: ValidationError) -> Iterator[str]:
    # Without what it was given: that is a model's, and may be long.
    for mistake in error.errors(include_url=False, include_context=False, include_input=False)[
        :_MISTAKES
    ]:
        place = ".".join(str(part) for part in mistake["loc"])
        said = "there is no such field" if mistake["type"] == "extra_forbidden" else mistake["msg"]
        yield f"{shown(place)}: {said}"[:_MISTAKE_CHARS]


def _without_bad_schemas(task: Task) -> Iterator[str]:
    """Take away schemas that are none, and yield what is said of each."""
    for step in task.steps:
        for name in ("output_schema", "per_item_schema"):
            schema = output_schema(getattr(step, name), "step result")
            if schema is not None and schema.problem is not None:
                setattr(step, name, None)
                yield f"the {name} of step {shown(step.id)} was dropped: {schema.problem}"
