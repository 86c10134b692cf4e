"""What makes a plan one that can be run. Nothing is run, written or asked here."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..errors import InvalidPlanError, shown
from ._plan import Step, Task, TaskPlan

_LONGEST_ID = 200
_NAMED = 8
"""Of many problems the first ones are told: the text is for models too."""


def check_plan(
    plan: TaskPlan, *, inputs: Collection[str] = (), tools: Collection[str] | None = None
) -> None:
    """Pass a plan that can be run.

    Args:
        plan: Its tasks may depend on each other, and on inputs.
        inputs: Keys of inputs, given or in memory already.
        tools: Names of the tools that steps may be restricted to; None does not look at them.

    Raises:
        InvalidPlanError: It has no tasks, a task without steps, an id twice, a dependency that is
            unknown, on itself or in a circle, or names an unknown tool.
    """
    _refuse([*_plan_problems(plan, inputs), *_steps_problems(plan.tasks, inputs, tools)])


def check_task(
    task: Task, *, inputs: Collection[str] = (), tools: Collection[str] | None = None
) -> None:
    """Pass a task that can be run by itself: one without steps has nothing to be run.

    Raises:
        InvalidPlanError: As `check_plan`, of its steps.
    """
    _refuse([*_id_problems("task", [task.id]), *_steps_problems([task], inputs, tools)])


def check_step(task: Task, step: Step, *, tools: Collection[str]) -> None:
    """Pass a step that can be run by itself, whatever it depends on.

    Raises:
        InvalidPlanError: Its id or that of its task cannot be one, or it names an unknown tool.
    """
    _refuse(
        [
            *_id_problems("task", [task.id]),
            *_id_problems("step", [step.id]),
            *_tool_problems(step, tools),
        ]
    )


def check_depth(what: str, planned: Sequence[Task] | Sequence[Step], **most: int) -> None:
    """Pass steps or tasks without a circle, whose longest chain is short enough.

    Args:
        what: What they are called.
        planned: The steps of a task, or the tasks of a plan.
        most: The one bound, by its name.

    Raises:
        InvalidPlanError: More than that wait for each other.
    """
    ((name, bound),) = most.items()
    graph = {each.id: set(each.depends_on) for each in planned}
    depth, left = 0, set(graph)
    while left and depth <= bound:
        # All that waits for nothing that is left.
        left = {id_ for id_ in left if graph[id_] & left}
        depth += 1
    if depth > bound:
        _refuse([f"its longest chain of {what}s has more than {name}={bound}"])


def known_dependencies(depends_on: Iterable[str], ids: Collection[str]) -> list[str]:
    """Return the dependencies that are of steps or tasks, each once; the others are inputs."""
    return [id_ for id_ in dict.fromkeys(depends_on) if id_ in ids]


def _refuse(problems: Sequence[str]) -> None:
    if len(problems) > _NAMED:
        problems = [*problems[:_NAMED], f"and {len(problems) - _NAMED} more"]
    if problems:
        raise InvalidPlanError(problems)


def _plan_problems(plan: TaskPlan, inputs: Collection[str]) -> Iterator[str]:
    if not plan.tasks:
        yield "it has no tasks"
    ids = [task.id for task in plan.tasks]
    yield from _id_problems("task", ids)
    for task in plan.tasks:
        if not task.steps:
            yield f"task {shown(task.id)} has no steps"
    yield from _graph_problems("task", {t.id: t.depends_on for t in plan.tasks}, inputs)


def _steps_problems(
    tasks: Sequence[Task], inputs: Collection[str], tools: Collection[str] | None
) -> Iterator[str]:
    yield from _id_problems("step", [step.id for task in tasks for step in task.steps])
    for task in tasks:
        yield from _graph_problems("step", {s.id: s.depends_on for s in task.steps}, inputs)
        for step in task.steps:
            yield from _tool_problems(step, tools)


def _tool_problems(step: Step, tools: Collection[str] | None) -> Iterator[str]:
    for name in step.tools or ():
        if tools is not None and name not in tools:
            known = ", ".join(sorted(tools)) or "none"
            yield f"step {shown(step.id)} names the unknown tool {shown(name)} (known: {known})"


def _id_problems(what: str, ids: Sequence[str]) -> Iterator[str]:
    for id_, count in Counter(ids).items():
        if count > 1:
            yield f"the {what} id {shown(id_)} stands {count} times"
        if not 0 < len(id_) <= _LONGEST_ID or any("\ud800" <= char <= "\udfff" for char in id_):
            yield f"a {what} id has 1 to {_LONGEST_ID} characters, got {shown(id_)}"


def _graph_problems(
    what: str, graph: Mapping[str, Sequence[str]], inputs: Collection[str]
) -> Iterator[str]:
    for id_, depends_on in graph.items():
        for other in dict.fromkeys(depends_on):
            if other == id_:
                yield f"{what} {shown(id_)} depends on itself"
            elif other not in graph and other not in inputs:
                yield (
                    f"{what} {shown(id_)} depends on {shown(other)}, "
                    f"which is neither a {what} nor an input"
                )
    circle = _circle(graph)
    if circle:
        yield f"{what}s depend on each other in a circle: {' -> '.join(map(shown, circle))}"


def _circle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the ids of one circle of more than one, the first one again at its end."""
    left = {
        id_: {other for other in on if other in graph and other != id_} for id_, on in graph.items()
    }
    ready = [id_ for id_, on in left.items() if not on]
    waiting: dict[str, list[str]] = {}
    for id_, on in left.items():
        for other in on:
            waiting.setdefault(other, []).append(id_)
    while ready:
        done = ready.pop()
        del left[done]
        for id_ in waiting.get(done, ()):
            left[id_].discard(done)
            if not left[id_]:
                ready.append(id_)
    if not left:
        return []
    # Whatever is left waits for something that is left: to follow that leads round.
    path = [next(iter(left))]
    while path[-1] not in path[:-1]:
        path.append(next(other for other in graph[path[-1]] if other in left and other != path[-1]))
    return path[path.index(path[-1]) :]
