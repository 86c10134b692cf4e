"""Requests that may be for any server: all are asked together, so that none holds them up."""

import asyncio
from collections.abc import Callable, Sequence

from ._call import Call
from ._channel import ServerDownError
from ._exchange import Reply
from ._messages import INTERNAL_ERROR, RpcError
from ._relay import Relay
from ._upstream import Upstream


class Together:
    """Asks several servers the same.

    Args:
        relay: Passes requests on to them.
        patience_seconds: How long a server is waited for, where another one has answered.
    """

    def __init__(self, relay: Relay, *, patience_seconds: float) -> None:
        self._relay = relay
        self._patience_seconds = patience_seconds

    async def first(
        self, call: Call, among: Sequence[Upstream], is_no: Callable[[RpcError], bool]
    ) -> tuple[Upstream, Reply]:
        """Return the answer of the first server, in their order, that has one.

        Args:
            call: The request.
            among: One server or more.
            is_no: Tells the errors that leave the request to the others.

        Raises:
            RpcError: No server has an answer, or the first that has one answers with an error.
            ServerDownError: The same, where the first of them is not there.
        """
        asked = [
            asyncio.create_task(self._relay.request(call, each, call.params)) for each in among
        ]
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience_seconds
        try:
            while True:
                left = max(until - loop.time(), 0)
                for upstream, task in zip(among, asked, strict=True):
                    if task.done() and not _leaves(task, is_no):
                        return upstream, task.result()
                    if not task.done() and left:
                        break  # it comes before those behind it
                pending = {task for task in asked if not task.done()}
                if not pending:
                    return among[0], asked[0].result()  # which raises
                await asyncio.wait(
                    pending, timeout=left or None, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def every(self, call: Call, among: Sequence[Upstream]) -> None:
        """Ask all servers, and wait for none of several longer than the others should.

        Raises:
            RpcError: One answered with an error.
        """
        seconds = self._patience_seconds if len(among) > 1 else None

        async def ask(upstream: Upstream) -> None:
            try:
                async with asyncio.timeout(seconds):
                    await self._relay.request(call, upstream, call.params)
            except TimeoutError:
                what = f"Server {upstream.name!r} did not answer within {seconds:g} seconds."
                raise RpcError(INTERNAL_ERROR, what) from None

        found = await asyncio.gather(*(ask(each) for each in among), return_exceptions=True)
        for each in found:
            if each is not None:
                raise each


def _leaves(task: "asyncio.Task[Reply]", is_no: Callable[[RpcError], bool]) -> bool:
    error = task.exception()
    return isinstance(error, ServerDownError) or (isinstance(error, RpcError) and is_no(error))
