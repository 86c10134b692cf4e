"""A `process` step: one run for each item of a list that an earlier step or an input gave."""

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import cast

from ..content import dumps, plain_rows, visible
from ..memory import memory_keys
from ..records import Envelope
from ._checkpoint import Checkpoint
from ._engine import CONCURRENCY, Settled, Unit
from ._loop import schema_warning
from ._means import Means
from ._merged import Emit
from ._plan import Schema, Step
from ._schema import output_schema
from ._step import StepRun, dependency_key

_ITEM = "item"
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_DIGEST_CHARS = 12


class FanOut:
    """One run of a `process` step.

    Items go on 8 at once, and their results stand in the order of the items: of one that failed
    an ``{"error": …}``, of one whose result was banked its pointer. The step fails where all
    items do.

    Args:
        means: What items are run with.
        whole: The run of the step itself, which tells and keeps how it ends.
        checkpoint: Takes results.
        item_run: Makes of a step for one item its run.
    """

    def __init__(
        self,
        means: Means,
        whole: StepRun,
        checkpoint: Checkpoint,
        item_run: Callable[[Step], StepRun],
    ) -> None:
        self._means = means
        self._whole = whole
        self._step = whole.step
        self._checkpoint = checkpoint
        self._item_run = item_run

    async def run(self, emit: Emit) -> str | None:
        """Run all items, unless the step is finished. Return why it failed, None where not."""
        if await self._whole.is_finished():
            return None
        self._means.context.check()
        self._whole.begin()
        if not self._step.depends_on:
            self._whole.complete()
            return None
        steps = await self._item_steps(await self._source(), emit)
        errors = await self._run_items(steps, emit)
        self._step.items, self._step.items_failed = len(steps), len(errors)
        if errors and len(errors) == len(steps):
            first = errors[steps[0].id]
            error = f"all {len(steps)} items failed: {first}" if len(steps) > 1 else first
            await self._whole.fail(error, emit)
            return error
        await self._whole.keep([await self._value(step, errors) for step in steps])
        self._whole.complete()
        return None

    async def _source(self) -> list[object]:
        key = dependency_key(self._whole.task, self._step.depends_on[0])
        value = await self._means.context.memory.get_value(key)
        if value is None:
            return []
        value = plain_rows(value)
        return cast("list[object]", value) if isinstance(value, list) else [value]

    async def _item_steps(self, items: Iterable[object], emit: Emit) -> list[Step]:
        """Return a step for each item, each with an id of its own that stays the same."""
        template = self._step.per_item_instructions or self._step.instructions
        schema = await self._schema(emit)
        steps: list[Step] = []
        taken = {step.id for step in self._whole.task.steps}
        counts: dict[str, int] = {}
        for item in items:
            digest = sha256(dumps(item)).hexdigest()[:_DIGEST_CHARS]
            id_ = alone = f"{self._step.id}_item_{digest}"
            while id_ in taken:
                counts[digest] = counts.get(digest, 1) + 1
                id_ = f"{alone}_{counts[digest]}"
            taken.add(id_)
            steps.append(
                Step(
                    id=id_,
                    instructions=await self._rendered(template, item),
                    depends_on=self._step.depends_on[1:],
                    tools=self._step.tools,
                    output_schema=schema,
                )
            )
        return steps

    async def _schema(self, emit: Emit) -> Schema | None:
        """Return the schema of items. Whether it counts is told here, once for all of them."""
        authored = self._step.per_item_schema
        authored = self._step.output_schema if authored is None else authored
        schema = output_schema(authored, "")
        if schema is None or schema.problem is None:
            return authored
        await emit(schema_warning(self._step, schema.problem))
        return {}

    async def _rendered(self, template: str, item: object) -> str:
        """Return the instructions for an item. What was put in is not looked at again."""
        values = {_ITEM: item}
        if isinstance(item, Mapping):
            values.update(cast("Mapping[str, object]", item))
        named = {match for match in _PLACEHOLDER.findall(template) if match in values}
        texts = {name: await self._text(values[name]) for name in named}
        return _PLACEHOLDER.sub(lambda match: texts.get(match[1], match[0]), template)

    async def _text(self, value: object) -> str:
        """Return a value as instructions show it: a large one as the envelope of its pointer."""
        text = value if isinstance(value, str) else dumps(value).decode("utf-8", "surrogatepass")
        # By its content: a run that goes on says what it said before.
        shown = await self._means.mirror.offload_part(text, _ITEM)
        return visible(str(shown) if isinstance(shown, Envelope) else text)

    async def _run_items(self, steps: Iterable[Step], emit: Emit) -> dict[str, str]:
        """Return why items failed, by the ids of their steps."""
        by_key = {memory_keys.step(step.id): step for step in steps}
        errors: dict[str, str] = {}

        async def work(key: str) -> str | None:
            return await self._item_run(by_key[key]).run(emit)

        async def tell(settled: Settled) -> None:
            if settled.error is not None:
                errors[by_key[settled.key].id] = settled.error

        units = [Unit(key) for key in by_key]
        await self._means.context.engine.run(units, work, tell, width=CONCURRENCY)
        return errors

    async def _value(self, step: Step, errors: Mapping[str, str]) -> object:
        if step.id in errors:
            return {"error": errors[step.id]}
        entry = await self._means.context.memory.get(memory_keys.step(step.id))
        return None if entry is None else entry.value
