"""A program of a server: whoever starts it leaves nothing behind, however that ends."""

import asyncio
import gc
import os
from typing import Any

import psutil
import pytest

from coatcheck.apps.proxy._process import ProcessChannel


@pytest.mark.parametrize("command", [None, "/nowhere/at-all"])
async def test_start_that_is_cancelled_at_any_moment_leaves_nothing(
    plain: Any, command: str | None
) -> None:
    spec = plain()
    if command is not None:
        spec = type(spec)(name="none", command=command)
    own = psutil.Process()
    before = (own.num_fds(), len(own.children()))

    for turns in range(12):
        starting = asyncio.create_task(ProcessChannel.start(spec, os.environ, lambda _: None))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().close()

    gc.collect()  # what was left open would be told now
    assert (own.num_fds(), len(own.children())) == before
