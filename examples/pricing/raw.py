"""The same story without pointers: ids pass through the model, which writes them out each time."""

import json
from collections.abc import Sequence
from typing import Any

from scripted import Function, Message, Run, calls, converse, results, says

from .catalogue import CATEGORY, REGION, Catalogue
from .policy import ACTIONS, PERCENT

SYSTEM = "You plan, carry out and verify price changes. Name all ids exactly; do not guess."
QUESTIONS = (
    (
        f"Plan this: raise the prices of all {CATEGORY}s in region {REGION} by {PERCENT} % in "
        f"each of {ACTIONS} weeks. Store the plan: one action a week, with all ids."
    ),
    "Carry out the plan plan-1, action by action.",
    "Verify the plan plan-1: what do the products of its first action cost now?",
)
_IDS = {"type": "array", "items": {"type": "string"}}
_TEXT = {"type": "string"}


class Raw:
    """Runs the story on a catalogue, and counts what the model writes."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.plans: dict[str, Any] = {}
        self.passed: list[str] = []
        """What the model wrote."""

    async def run(self) -> list[Run]:
        """Return the three conversations. No window ends them, so that their cost is seen."""
        functions = self._functions()
        return [
            await converse(
                self._model, functions, system=SYSTEM, question=question, window_tokens=None
            )
            for question in QUESTIONS
        ]

    def _functions(self) -> list[Function]:
        catalogue = self._catalogue

        def resolve_products(category: str) -> list[str]:
            return [product["id"] for product in catalogue.products(category)]

        def resolve_scope(region: str) -> list[str]:
            return catalogue.channels(region)

        def store_plan(title: str, actions: list[dict[str, Any]]) -> dict[str, object]:
            self.plans["plan-1"] = {"title": title, "actions": actions}
            return {"planId": "plan-1", "actions": len(actions)}

        def get_plan(planId: str) -> object:  # noqa: N803 - as models see it
            return self.plans[planId]

        def change_prices(product_ids: list[str], channel_ids: list[str], percent: int) -> object:
            changed = catalogue.raise_prices(product_ids, channel_ids, percent)
            return {"received": len(product_ids), "changed": changed}

        def mean_price(product_ids: list[str], channel_ids: list[str]) -> object:
            return catalogue.mean_price(product_ids, channel_ids)

        lists: dict[str, object] = {"product_ids": _IDS, "channel_ids": _IDS}
        actions = {"type": "array", "items": {"type": "object"}}
        return [
            Function(resolve_products, "Find the products of a category.", {"category": _TEXT}),
            Function(resolve_scope, "Find the channels of a region.", {"region": _TEXT}),
            Function(store_plan, "Keep a plan.", {"title": _TEXT, "actions": actions}),
            Function(get_plan, "Get a plan.", {"planId": _TEXT}),
            Function(change_prices, "Raise prices.", {**lists, "percent": {"type": "integer"}}),
            Function(mean_price, "Return the mean price.", lists),
        ]

    def _model(self, messages: Sequence[Message]) -> Message:
        said = _next(messages)
        self.passed.append(json.dumps(said))
        return said


def _next(messages: Sequence[Message]) -> Message:
    question, shown = str(messages[1]["content"]), [json.loads(text) for text in results(messages)]
    if question == QUESTIONS[0]:
        return _plan(shown, messages)
    if not shown:
        return calls(("get_plan", {"planId": "plan-1"}), after=messages)
    actions = shown[0]["actions"]
    if len(shown) > 1:
        return says(f"Done: {json.dumps(shown[-1])}")
    if question == QUESTIONS[1]:
        return calls(*(("change_prices", each) for each in actions), after=messages)
    named = {name: actions[0][name] for name in ("product_ids", "channel_ids")}
    return calls(("mean_price", named), after=messages)


def _plan(shown: Sequence[Any], messages: Sequence[Message]) -> Message:
    if not shown:
        first = ("resolve_products", {"category": CATEGORY})
        return calls(first, ("resolve_scope", {"region": REGION}), after=messages)
    if len(shown) == 2:
        action = {"product_ids": shown[0], "channel_ids": shown[1], "percent": PERCENT}
        plan = {"title": "Raise prices", "actions": [action] * ACTIONS}
        return calls(("store_plan", plan), after=messages)
    return says(f"The plan is {shown[2]['planId']}.")
