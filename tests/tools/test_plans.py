"""`store_plan` and `get_plan`: pointers stay text, and are tried before a plan is kept."""

import json
from typing import Any

import pytest

from coatcheck import Bank, Kind, Limits, mirror
from coatcheck.content import dumps, estimate_tokens
from coatcheck.stores import FileStore, MemoryStore
from coatcheck.tools import Tool, plan_tools

KINDS = [Kind("product-set", prefix="ps"), Kind("scope", prefix="scope")]
DIGITS = "0" * 32


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), kinds=KINDS)


def action(**named: object) -> dict[str, object]:
    return {"name": "change", **named}


async def asked(tool: Tool, **arguments: object) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(await tool.call(arguments))
    return reply


def test_the_two_tools_cost_few_tokens(bank: Bank) -> None:
    store_plan, get_plan = plan_tools(bank)

    assert (store_plan.name, get_plan.name) == ("store_plan", "get_plan")
    defined = [[each.name, each.description, each.parameters] for each in (store_plan, get_plan)]
    assert estimate_tokens(dumps(defined).decode()) <= 200


async def test_a_plan_is_kept_under_a_plan_pointer_and_its_pointers_stay_text(bank: Bank) -> None:
    products = await bank.put(["p-1", "p-2"], kind="product-set")
    scope = await bank.put(["c-1"], kind="scope")
    actions = [action(productSetId=f"{products.pointer}#/0", deep=[{"scope": scope.pointer}])]
    store_plan, get_plan = plan_tools(bank)

    stored = await asked(store_plan, title="Raise", actions=actions)
    plan = await asked(get_plan, planId=stored["planId"])

    assert stored == {"planId": stored["planId"], "title": "Raise", "actions": 1}
    assert stored["planId"].startswith("plan-")
    assert plan == {"title": "Raise", "actions": actions}
    assert await bank.get(stored["planId"]) == plan
    assert products.pointer.startswith("ps-")
    assert scope.pointer.startswith("scope-")


async def test_pointers_of_an_action_are_resolved_when_it_is_run(bank: Bank) -> None:
    def change(productSetId: list[str], percent: int) -> list[str]:  # noqa: N803 - the plan's
        return [f"{id_}+{percent}" for id_ in productSetId]

    products = await bank.put(["p-1", "p-2"], kind="product-set")
    store_plan, _ = plan_tools(bank)
    stored = await asked(
        store_plan, title="Raise", actions=[{"productSetId": products.pointer, "percent": 10}]
    )

    plan: Any = await bank.get(stored["planId"])
    changed = [mirror(change, bank)(**each) for each in plan["actions"]]

    assert changed == [["p-1+10", "p-2+10"]]


@pytest.mark.parametrize(
    ("pointer", "error", "named"),
    [
        (f"ps-{DIGITS}", "unknown-pointer", f"ps-{DIGITS[:20]}"),
        (f"art:{'0' * 8}-0000-4000-8000-{'0' * 12}", "unknown-pointer", "art:00000000-0000"),
        (f"plan-{DIGITS}", "unknown-pointer", f"plan-{DIGITS[:20]}"),
        (f"ps-{DIGITS}#the first", "invalid-argument", "#the first"),
    ],
)
async def test_a_plan_with_a_pointer_that_leads_nowhere_is_refused_by_its_name(
    bank: Bank, pointer: str, error: str, named: str
) -> None:
    store_plan, _ = plan_tools(bank)

    failure = await asked(store_plan, title="t", actions=[action(sets=[[pointer]])])

    assert failure["error"] == error
    assert named in failure["message"]


async def test_a_selector_that_picks_nothing_refuses_the_plan(bank: Bank) -> None:
    products = await bank.put([{"id": 1}], kind="product-set")
    store_plan, _ = plan_tools(bank)

    failure = await asked(
        store_plan, title="t", actions=[action(ids=f"{products.pointer}#/0/name")]
    )

    assert failure["error"] == "not-found"


@pytest.mark.parametrize("text", ["plan-b", "ps-1", "art:deco posters", f"zz-{DIGITS}"])
async def test_text_that_only_looks_like_a_pointer_is_text(bank: Bank, text: str) -> None:
    store_plan, get_plan = plan_tools(bank)

    stored = await asked(store_plan, title="t", actions=[action(note=text)])

    plan = await asked(get_plan, planId=stored["planId"])
    assert plan["actions"] == [action(note=text)]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([], "1 to 1,000 actions, got 0"),
        ([action()] * 1_001, "got 1001"),
        (["raise"], "a list of objects"),
        ("raise", "a list of objects"),
        (None, "actions is required"),
    ],
    ids=["none", "many", "text", "no list", "null"],
)
async def test_actions_that_are_none_are_refused(bank: Bank, actions: object, message: str) -> None:
    store_plan, _ = plan_tools(bank)

    failure = await asked(store_plan, title="t", actions=actions)

    assert failure["error"] == "invalid-argument"
    assert message in failure["message"]


async def test_a_thousand_actions_are_a_plan_which_is_read_in_pages(bank: Bank) -> None:
    store_plan, get_plan = plan_tools(bank)
    actions = [action(at=at, note="z" * 100) for at in range(1_000)]

    stored = await asked(store_plan, title="t", actions=actions)
    page = await asked(get_plan, planId=stored["planId"])

    assert stored["actions"] == 1_000
    assert page["hasMore"]
    assert len(page["content"]) <= 50_000
    assert len(await bank.get(stored["planId"], dict[str, Any])) == 2


async def test_one_action_alone_is_a_list_of_one(bank: Bank) -> None:
    store_plan, _ = plan_tools(bank)

    stored = await asked(store_plan, title="t", actions=action())

    assert stored["actions"] == 1


@pytest.mark.parametrize("what", ["unknown", "no plan"])
async def test_what_is_no_plan_is_not_read_as_one(bank: Bank, what: str) -> None:
    _, get_plan = plan_tools(bank)
    pointer = (await bank.put("text")).pointer if what == "no plan" else f"plan-{DIGITS}"

    failure = await asked(get_plan, planId=pointer)

    assert failure["error"] == ("invalid-argument" if what == "no plan" else "unknown-pointer")
    assert pointer in failure["message"]


async def test_a_plan_is_found_by_another_process(tmp_path: Any) -> None:
    async def opened() -> Bank:
        return Bank(FileStore(tmp_path), limits=Limits())

    store_plan, _ = plan_tools(await opened())
    stored = await asked(store_plan, title="t", actions=[action()])
    _, get_plan = plan_tools(await opened())

    assert await asked(get_plan, planId=stored["planId"]) == {"title": "t", "actions": [action()]}


def test_tools_of_ours_say_that_they_are_bounded_and_others_do_not(bank: Bank) -> None:
    async def call(arguments: object) -> str:
        return "reply"

    assert [tool.is_bounded for tool in plan_tools(bank)] == [True, True]
    assert not Tool("get_plan", "", {}, call).is_bounded
