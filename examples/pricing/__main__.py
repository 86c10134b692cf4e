"""Prices of 847 products are raised ten times, and no id of one passes through a model.

The story of Flow AI's agents: "raise the prices of all energy drinks". An agent finds the products
and the channels in a catalogue of 20,000 (SQLite), sees in their glimpses that they are the right
ones, and stores a plan of ten actions that name them by pointer. A second agent carries the plan
out: what stands behind a pointer is looked up when an action runs. A third verifies it. Beside it
the same without pointers, where a model writes all ids out, with no window that would end it.

By default scripts stand in for the models, so this shows what the pointers cost, not what a model
would do. `--model` takes one that pydantic-ai knows, as `openai:gpt-5`, and its key from the
environment; the raw way is then left out.

    pip install 'coatcheck[agent,cli]'
    cd examples && python -m pricing
"""

import argparse
import asyncio
import json
from contextlib import aclosing
from typing import Any, cast

from ledger import Ledger
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from scripted import WINDOW_TOKENS, table, tokens

from coatcheck import Limits, is_pointer
from coatcheck.runtime import Agent, RunContext, Step, Task
from coatcheck.tools import plan_tools

from .catalogue import CATEGORY, KINDS, REGION, Catalogue, digest, tools
from .policy import ACTIONS, EXECUTE, PERCENT, PLAN, VERIFY
from .raw import Raw
from .script import scripted_model

Row = dict[str, object]
Plan = dict[str, Any]


def story() -> Task:
    """Return the three steps."""
    plan = {"type": "object", "properties": {"planId": {"type": "string"}}, "required": ["planId"]}
    count = {"type": "object", "properties": {"actions": {"type": "integer"}}}
    price = {"type": "object", "properties": {"products": {"type": "integer"}, "mean_cents": {}}}
    finders = ["resolve_products", "resolve_scope", "store_plan"]
    steps = [
        Step(id="plan", instructions=PLAN, tools=finders, output_schema=plan),
        Step(
            id="execute",
            instructions=EXECUTE,
            tools=["get_plan", "change_prices"],
            output_schema=count,
            depends_on=["plan"],
        ),
        Step(
            id="verify",
            instructions=VERIFY,
            tools=["get_plan", "mean_price"],
            output_schema=price,
            depends_on=["plan", "execute"],
        ),
    ]
    return Task(id="pricing", title="Raise prices", steps=steps)


async def by_pointers(model: Model) -> Row:
    """Return what the story costs and does with pointers."""
    catalogue, ledger = Catalogue(), Ledger(model)
    # Without previews, which would be the first ids: the glimpses say what they are.
    limits = Limits(preview_chars=0, glimpse_tokens=200)
    async with RunContext.open("memory:", kinds=KINDS, limits=limits) as context:
        agent = Agent(
            objective="Raise prices.",
            task=story(),
            model=ledger,
            tools=[*tools(catalogue), *plan_tools(context.bank)],
        )
        async with aclosing(agent.execute(context)) as events:
            async for _event in events:
                pass
        return {
            "way": "pointers",
            "requests": len(ledger.requests),
            "tokens in": sum(ledger.requests),
            "largest request": max(ledger.requests),
            "tokens out": ledger.tokens_out,
            "characters out": ledger.chars_out,
            **_scope(await _stored_plan(context)),
            **_outcome(catalogue, "\n".join(ledger.passed)),
            "answer": agent.get_results(),
        }


async def _stored_plan(context: RunContext) -> Plan:
    """Return the plan of the first step; an empty one where a model came to none."""
    result = await context.memory.get_value("step:plan")
    if not isinstance(result, dict):
        return {"actions": []}
    plan_id = str(cast("dict[str, object]", result).get("planId"))
    return await context.bank.get(plan_id, Plan) if is_pointer(plan_id) else {"actions": []}


async def raw() -> Row:
    """Return the same without pointers."""
    catalogue = Catalogue()
    way = Raw(catalogue)
    runs = await way.run()
    requests = [sent for run in runs for sent in run.calls_in]
    return {
        "way": "raw",
        "requests": len(requests),
        "tokens in": sum(requests),
        "largest request": max(requests),
        "tokens out": sum(run.tokens_out for run in runs),
        "characters out": sum(map(len, way.passed)),
        **_scope(way.plans["plan-1"]),
        **_outcome(catalogue, "\n".join(way.passed)),
        "answer": runs[-1].answer,
    }


def _scope(plan: Plan) -> Row:
    """Return what three ids of channels take in all actions of a plan."""
    named = [action.get("channel_ids") for action in plan["actions"]]
    return {
        "scope characters": sum(len(json.dumps(each)) for each in named),
        "scope tokens": sum(tokens(each) for each in named),
    }


def _outcome(catalogue: Catalogue, passed: str) -> Row:
    """Return what the database says came of it, and what of it a model saw."""
    ids = [product["id"] for product in catalogue.products(CATEGORY)]
    seen = [id_ for id_ in (*ids, *catalogue.channels(REGION)) if id_ in passed]
    exact = catalogue.received == [digest(ids)] * ACTIONS
    return {
        "ids seen": len(seen),
        "ids exact": "yes" if exact else "no",
        "prices right": "yes" if catalogue.is_as_wanted(ACTIONS, PERCENT) else "no",
    }


def main() -> None:
    """Print what the story costs, by pointers and raw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--model", help="a model that pydantic-ai knows, as openai:gpt-5")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    try:
        model = infer_model(options.model) if options.model else scripted_model()
    except (UserError, ImportError) as error:
        parser.error(str(error))
    rows = [asyncio.run(by_pointers(model))]
    if options.model is None:
        rows.append(asyncio.run(raw()))
    if options.json:
        print(json.dumps(rows))
        return
    heads = [head for head in rows[0] if head != "answer"]
    print(table([heads, *[[row[head] for head in heads] for row in rows]]))
    if rows[-1]["largest request"] > WINDOW_TOKENS:  # type: ignore[operator]
        print(f"A window of {WINDOW_TOKENS:,} tokens would have ended the raw way.")


if __name__ == "__main__":
    main()
