"""What a careful model would do next, written down: it sees messages, and nothing behind them."""

import json
import re
from collections.abc import Sequence
from typing import Any

from .catalogue import CATEGORY, MATCHING, REGION

ACTIONS = 10
PERCENT = 1

PLAN = (
    f"Plan this: raise the prices of all {CATEGORY}s in region {REGION} by {PERCENT} % in each of "
    f"the next {ACTIONS} weeks. Find the products with resolve_products and the channels with "
    "resolve_scope, and see in their glimpses whether these are the right ones. Then keep the "
    f"plan with store_plan: {ACTIONS} actions, each {{name, product_ids, channel_ids, percent}}, "
    "in which product_ids is the set's pointer followed by #$[*].id, and channel_ids the scope's "
    "pointer. Your result is its planId."
)
EXECUTE = (
    "Carry out the plan whose id the step before gave: read it with get_plan, and call "
    "change_prices once for each action, in order, with what the action says. Your result is how "
    "many actions were carried out."
)
VERIFY = (
    "Verify the plan whose id the first step gave: read it with get_plan, and call mean_price "
    "with the product_ids and channel_ids of its first action. Your result is what it returned."
)

Turn = list[tuple[str, dict[str, Any]]]


def next_turn(first: str, returned: Sequence[str]) -> Turn:
    """Return the calls that come next in a step.

    Args:
        first: Its first message.
        returned: What its calls returned so far.
    """
    if first.startswith("Plan this"):
        return _plan(returned)
    if not returned:
        return [("memory_read", {"keys": re.findall(r"^- (step:plan)\b", first, re.MULTILINE)})]
    if len(returned) == 1:
        entry = json.loads(returned[0])["entries"]["step:plan"]
        return [("get_plan", {"planId": entry["value"]["planId"]})]
    actions = json.loads(returned[1])["actions"]
    if first.startswith("Carry out"):
        return _execute(actions, returned[2:])
    if len(returned) == 2:
        named = {name: actions[0][name] for name in ("product_ids", "channel_ids")}
        return [("mean_price", named)]
    return [_finish(json.loads(returned[2]))]


def _plan(returned: Sequence[str]) -> Turn:
    if not returned:
        return [("resolve_products", {"category": CATEGORY}), ("resolve_scope", {"region": REGION})]
    if len(returned) == 2:
        products, scope = (json.loads(text) for text in returned)
        if (
            f"{MATCHING} products" not in products["glimpse"]
            or "3 channels" not in scope["glimpse"]
        ):
            return [_finish({"planId": None})]
        actions = [
            {
                "name": f"week {week}",
                "product_ids": f"{products['pointer']}#$[*].id",
                "channel_ids": scope["pointer"],
                "percent": PERCENT,
            }
            for week in range(1, ACTIONS + 1)
        ]
        return [("store_plan", {"title": "Raise prices", "actions": actions})]
    return [_finish({"planId": json.loads(returned[2])["planId"]})]


def _execute(actions: Sequence[dict[str, Any]], replies: Sequence[str]) -> Turn:
    if not replies:
        names = ("product_ids", "channel_ids", "percent")
        return [("change_prices", {name: each[name] for name in names}) for each in actions]
    return [_finish({"actions": sum("changed" in json.loads(text) for text in replies)})]


def _finish(result: object) -> tuple[str, dict[str, Any]]:
    return "finish_step", {"result": result}
