"""The ingredients of a product, from its safety data sheet, which is handed on by pointer.

The second experiment of "Solving Context Window Overflow in AI Agents" (arXiv 2511.22729), rebuilt
without a model or network: `get_sheet` gives a sheet of some 1,400 tokens, `list_ingredients`
takes its text. The paper reports 6,411 tokens with the text in the context and 841 with a pointer.
Three harder cases follow: two products in one run, an ingredient list split over two results, and
a product whose name begins like a pointer. Here a script stands in for the model, so this shows
what the pointers cost, not what a model would do with them.

Sheets are shown as bare pointers, without preview and glimpse: the next tool needs no more. The
rows "pointers, can read" add what it costs to offer `retrieve_context` too, which nobody calls.

    pip install 'coatcheck[cli]'
    python examples/safety_sheet.py
"""

import argparse
import asyncio
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from scripted import Function, Message, Run, calls, converse, handed_on, results, says, table

from coatcheck import Bank, Limits
from coatcheck.stores import MemoryStore

SYSTEM = (
    "You answer questions on chemical products with your tools. A large result comes as JSON "
    "with a pointer (art:…): give a tool that pointer in place of the text. Do not guess."
)
SECTIONS = (
    "Identification", "Hazards", "Composition", "First aid", "Fire-fighting", "Accidental release",
    "Handling and storage", "Exposure controls", "Physical properties", "Stability",
    "Toxicology", "Ecology", "Disposal", "Transport", "Regulation", "Other",
)  # fmt: skip
SUBSTANCES = (
    ("ethanol", "64-17-5"), ("acetone", "67-64-1"), ("toluene", "108-88-3"),
    ("xylene", "1330-20-7"), ("n-butyl acetate", "123-86-4"), ("propan-2-ol", "67-63-0"),
    ("butanone", "78-93-3"), ("ethyl acetate", "141-78-6"), ("cyclohexane", "110-82-7"),
)  # fmt: skip
WORDS = (
    "keep", "container", "tightly", "closed", "in", "a", "dry", "ventilated", "place", "avoid",
    "contact", "with", "skin", "wear", "gloves", "and", "goggles", "rinse", "water", "for",
    "several", "minutes", "vapours", "may", "form", "mixtures", "air",
)  # fmt: skip
INGREDIENTS = 4
SHARES = (45, 30, 15, 10)
LINE = re.compile(r"^([^|\n]+) \| ([0-9]+-[0-9]{2}-[0-9]) \| ([0-9]+) %$", re.MULTILINE)


def sheet(product: str) -> str:
    """Return a safety data sheet: 16 sections, four ingredients in the third, two decoys later."""
    draw = random.Random(product)  # the same sheet for the same product
    substances = draw.sample(SUBSTANCES, INGREDIENTS + 2)
    parts: list[str] = []
    for number, title in enumerate(SECTIONS, 1):
        words = " ".join(draw.choice(WORDS) for _ in range(64))
        parts.append(f"SECTION {number}: {title} ({product})\n{words}.")
        if number == 3:
            parts += [
                f"{name} | {cas} | {share} %"
                for (name, cas), share in zip(substances, SHARES, strict=False)
            ]
        if number in {8, 15}:
            name, cas = substances[INGREDIENTS + (number == 15)]
            parts.append(f"Limit value: {name} | {cas} | 8 h")
    return "\n".join(parts) + "\n"


def ingredients(product: str) -> list[str]:
    """Return the true answer."""
    return [found[1] for found in LINE.finditer(sheet(product))]


def get_sheet(product: str) -> str:
    """Return a product's sheet."""
    return sheet(product)


def get_sheet_part(product: str, part: int) -> str:
    """Return the first or second part of a sheet, cut within the list of ingredients."""
    text = sheet(product)
    cut = list(LINE.finditer(text))[1].start() + 3
    return (text[:cut], text[cut:])[part - 1]


def list_ingredients(text: str) -> list[str]:
    """Return the names in a sheet's list of ingredients."""
    return [found[1] for found in LINE.finditer(text)]


def list_ingredients_of_parts(texts: list[str]) -> list[str]:
    """Return the names in the list of ingredients of a sheet in parts."""
    return list_ingredients("".join(texts))


STRING = {"type": "string"}
WHOLE = (
    Function(get_sheet, "Get a product's safety data sheet.", {"product": STRING}),
    Function(list_ingredients, "List the ingredients a sheet names.", {"text": STRING}),
)
PARTS = (
    Function(
        get_sheet_part,
        "Get one of the two parts of a product's safety data sheet.",
        {"product": STRING, "part": {"type": "integer"}},
    ),
    Function(
        list_ingredients_of_parts,
        "List the ingredients that the parts of a sheet name, in order.",
        {"texts": {"type": "array", "items": STRING}},
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One question, and what it is answered with."""

    name: str
    products: tuple[str, ...]
    functions: tuple[Function, ...] = WHOLE

    @property
    def question(self) -> str:
        """What the user asks."""
        return f"What is in {' and in '.join(self.products)}?"

    @property
    def answer(self) -> str:
        """What the model says when all went right."""
        return "; ".join(", ".join(ingredients(product)) for product in self.products)


CASES = (
    Case("one product", ("Varnish 12",)),
    Case("two products", ("Varnish 12", "Thinner 7")),
    Case("list split in two", ("Varnish 12",), PARTS),
    Case("name like a pointer", ("art:deco varnish",)),
)


def model(messages: Sequence[Message]) -> Message:
    """Write the next message, from what was shown. One sheet at a time, both parts at once."""
    products = str(messages[1]["content"]).removeprefix("What is in ").rstrip("?").split(" and in ")
    return _of_sheets(messages, products)


def model_of_parts(messages: Sequence[Message]) -> Message:
    """Write the next message where a sheet comes in parts."""
    shown = results(messages)
    product = str(messages[1]["content"]).removeprefix("What is in ").rstrip("?")
    if not shown:
        asked = [("get_sheet_part", {"product": product, "part": part}) for part in (1, 2)]
        return calls(*asked, after=messages)
    if len(shown) == 2:
        texts = [handed_on(each, is_text=True) for each in shown]
        return calls(("list_ingredients_of_parts", {"texts": texts}), after=messages)
    return says(_listed(shown[2:]))


def _of_sheets(messages: Sequence[Message], products: Sequence[str]) -> Message:
    shown = results(messages)
    if not shown:
        asked = [("get_sheet", {"product": product}) for product in products]
        return calls(*asked, after=messages)
    if len(shown) == len(products):
        texts = [handed_on(each, is_text=True) for each in shown]
        return calls(*[("list_ingredients", {"text": text}) for text in texts], after=messages)
    return says(_listed(shown[len(products) :]))


def _listed(answers: Sequence[str]) -> str:
    return "; ".join(", ".join(json.loads(answer)) for answer in answers)


async def run(case: Case, *, pointers: bool = True, reader: bool = False) -> Run:
    """Return a run of a case.

    Args:
        case: What is asked.
        pointers: Whether sheets are handed on by pointer.
        reader: Whether the model is also given `retrieve_context`.
    """
    limits = Limits(
        per_tool={"get_sheet": 2_000, "get_sheet_part": 0}, preview_chars=0, glimpse_tokens=0
    )
    # A fixed secret makes fixed pointers, and with them fixed counts.
    bank = Bank(MemoryStore(), limits=limits, secret=bytes(32))
    return await converse(
        model if case.functions is WHOLE else model_of_parts,
        case.functions,
        system=SYSTEM,
        question=case.question,
        bank=bank if pointers else None,
        reader=reader,
    )


def main() -> None:
    """Print what each case costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for case in CASES:
        for way, pointers, reader in (
            ("pointers", True, False),
            ("pointers, can read", True, True),
            ("raw", False, False),
        ):
            done = asyncio.run(run(case, pointers=pointers, reader=reader))
            rows.append(
                {
                    "case": case.name,
                    "way": way,
                    "calls": len(done.calls_in),
                    "in": done.tokens_in,
                    "out": done.tokens_out,
                    "in and out": done.tokens_in + done.tokens_out,
                    "right": "yes" if done.answer == case.answer else "no",
                }
            )
    if options.json:
        print(json.dumps(rows))
        return
    print(table([list(rows[0]), *[list(row.values()) for row in rows]]))


if __name__ == "__main__":
    main()
