import graphlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.errors import InvalidPlanError
from coatcheck.runtime import Step, Task, TaskPlan, check_plan, check_task, known_dependencies
from coatcheck.runtime._check import check_depth

UP_TO_NINE = [f"t{number}" for number in range(9)]


def task(id_: str, *depends_on: str, steps: list[Step] | None = None) -> Task:
    steps = [Step(id=f"{id_}_s")] if steps is None else steps
    return Task(id=id_, depends_on=[*depends_on], steps=steps)


def step(id_: str, *depends_on: str, tools: list[str] | None = None) -> Step:
    return Step(id=id_, depends_on=[*depends_on], tools=tools)


def problems(plan: TaskPlan, **known: list[str]) -> tuple[str, ...]:
    with pytest.raises(InvalidPlanError) as refused:
        check_plan(plan, **known)
    assert str(refused.value).startswith("The plan cannot be run: ")
    assert refused.value.hint
    return refused.value.problems


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ([], "it has no tasks"),
        ([task("a", steps=[])], "task 'a' has no steps"),
        ([task("a"), task("a", steps=[step("x")])], "the task id 'a' stands 2 times"),
        ([task("a", "a")], "task 'a' depends on itself"),
        ([task("a"), task("b", "ghost")], "task 'b' depends on 'ghost', which is neither"),
        ([task("a", "b"), task("b", "a")], "in a circle: 'a' -> 'b' -> 'a'"),
        ([task("a", steps=[step("s"), step("s")])], "the step id 's' stands 2 times"),
        (
            [task("a", steps=[step("s")]), task("b", steps=[step("s")])],
            "the step id 's' stands 2 times",
        ),
        ([task("a", steps=[step("s", "s")])], "step 's' depends on itself"),
        ([task("a", steps=[step("s", "nope")])], "step 's' depends on 'nope', which is neither"),
        (
            [task("a", steps=[step("s")]), task("b", steps=[step("t", "s")])],
            "step 't' depends on 's', which is neither a step nor an input",
        ),
        (
            [task("a", steps=[step("s", "u"), step("t", "s"), step("u", "t")])],
            "steps depend on each other in a circle: 's' -> 'u' -> 't' -> 's'",
        ),
        ([task("")], "a task id has 1 to 200 characters, got ''"),
        ([task("x" * 201, steps=[step("s")])], "a task id has 1 to 200 characters"),
        ([task("a", steps=[step("\ud83d")])], "a step id has 1 to 200 characters"),
    ],
)
def test_b70_b72_what_is_wrong_with_a_plan_is_named(tasks: list[Task], told: str) -> None:
    found = problems(TaskPlan(tasks=tasks))

    assert any(told in each for each in found), found
    assert len(found) == 1


def test_br_081_an_unknown_dependency_names_both_ends() -> None:
    (told,) = problems(TaskPlan(tasks=[task("A"), task("B", "ghost")]))

    assert "'B'" in told
    assert "'ghost'" in told


def test_b71_inputs_are_known_dependencies_of_steps_and_tasks() -> None:
    plan = TaskPlan(tasks=[task("a", "region", steps=[step("s", "customer")])])

    assert len(problems(plan)) == 2
    assert len(problems(plan, inputs=["customer"])) == 1
    check_plan(plan, inputs=["customer", "region"])


def test_unknown_tools_are_named_where_tools_are_known() -> None:
    plan = TaskPlan(tasks=[task("a", steps=[step("s", tools=["search", "rm"])])])

    check_plan(plan)
    check_plan(plan, tools=["search", "rm", "fetch"])
    (told,) = problems(plan, tools=["search", "fetch"])
    assert told == "step 's' names the unknown tool 'rm' (known: fetch, search)"
    (first, _) = problems(plan, tools=[])
    assert "(known: none)" in first


def test_all_problems_are_told_up_to_a_bound() -> None:
    plan = TaskPlan(tasks=[task(f"t{number}", "ghost") for number in range(30)])

    found = problems(plan)

    assert len(found) == 9
    assert found[-1] == "and 22 more"


def test_b49_a_task_without_steps_may_be_run_by_itself() -> None:
    check_task(Task(id="a"))
    with pytest.raises(InvalidPlanError, match="depends on 'ghost'"):
        check_task(task("a", steps=[step("s", "ghost")]))


def test_an_input_does_not_stand_in_for_a_sibling_of_its_name() -> None:
    assert known_dependencies(["a", "region", "b", "a"], {"a", "b", "c"}) == ["a", "b"]


@given(
    st.dictionaries(
        st.sampled_from(UP_TO_NINE), st.lists(st.sampled_from(UP_TO_NINE), max_size=4), min_size=1
    )
)
def test_a_graph_is_refused_exactly_where_it_cannot_be_sorted(graph: dict[str, list[str]]) -> None:
    plan = TaskPlan(tasks=[task(id_, *depends_on) for id_, depends_on in graph.items()])
    is_known = all(other in graph for depends_on in graph.values() for other in depends_on)
    try:
        graphlib.TopologicalSorter(graph).prepare()
        is_sortable = True
    except graphlib.CycleError:
        is_sortable = False

    if is_known and is_sortable:
        check_plan(plan)
    else:
        assert problems(plan)


CHAIN = [Step(id="a"), Step(id="b", depends_on=["a", "input"]), Step(id="c", depends_on=["b"])]


def test_a_chain_may_be_as_long_as_its_bound_and_no_longer() -> None:
    steps = [*CHAIN, Step(id="free")]

    check_depth("step", steps, max_steps=3)

    with pytest.raises(InvalidPlanError, match="chain of steps has more than max_steps=3"):
        check_depth("step", [*steps, Step(id="d", depends_on=["c"])], max_steps=3)
