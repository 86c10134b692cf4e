"""A call at a server that may ask, for a client that can only be asked in a result.

The server's question becomes the result of the client's request. The call goes on running,
parked, until the client sends the request again with the answer.
"""

import asyncio
import secrets
from collections.abc import Coroutine
from typing import Any, cast

from ._call import Call
from ._eras import input_required
from ._exchange import Reply
from ._messages import INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError

PARKED_SECONDS = 600.0
"""How long a call waits for the answer to a question. Then it is cancelled."""
_MOST_PARKED = 64
"""Calls of one client; one more, and the one that waits for longest is cancelled."""


class Running:
    """One call at a server, over all the requests that the client makes for it."""

    def __init__(self, request: Coroutine[Any, Any, Reply], call: Call) -> None:
        self.call = call
        """The client's latest request for it: what belongs to it is sent there."""
        self._task = asyncio.create_task(request)
        self._task.add_done_callback(self._finish)
        self._questions: dict[str, tuple[Json, asyncio.Future[Json]]] = {}
        self._asked = 0
        self._shown: tuple[str, ...] = ()
        self._woken: asyncio.Future[None] | None = None

    async def next(self) -> Reply | dict[str, Json]:
        """Return the result, or the questions that have to be answered first, by key.

        Raises:
            RpcError: The server answered with an error.
            ServerDownError: It ended before it answered.
        """
        while not self._task.done() and not self._questions:
            self._woken = asyncio.get_running_loop().create_future()
            try:
                await self._woken
            except asyncio.CancelledError:
                self.cancel()
                raise
        if self._task.done():
            return self._task.result()
        self._shown = (*self._questions,)
        return {key: question for key, (question, _) in self._questions.items()}

    async def ask(self, method: str, params: Json) -> Json:
        """Return the client's answer to a question of the server.

        Raises:
            RpcError: The client did not answer.
        """
        self._asked += 1
        key, answer = f"q{self._asked}", asyncio.get_running_loop().create_future()
        question: Json = {"method": method}
        if params:
            question["params"] = params
        self._questions[key] = (question, answer)
        self._wake()
        try:
            return cast("Json", await answer)
        finally:
            self._questions.pop(key, None)

    def take_answers(self, given: object) -> None:
        """Hand the client's answers on; a question that it was shown and did not answer is refused.

        What the server has asked since then stays for the next result.
        """
        answers = cast("Json", given) if isinstance(given, dict) else {}
        for key in self._shown:
            _, waiting = self._questions.pop(key, (None, None))
            answer = answers.get(key)
            if waiting is None or waiting.done():
                continue
            if isinstance(answer, dict):
                waiting.set_result(cast("Json", answer))
            else:
                waiting.set_exception(RpcError(INVALID_PARAMS, "The client gave no answer."))

    def cancel(self) -> None:
        """End the call, at the server too."""
        self._task.cancel()
        for _, waiting in self._questions.values():
            waiting.cancel()

    def _finish(self, _: object) -> None:
        # What was asked beside the call can no longer be put to the client.
        for _, waiting in self._questions.values():
            if not waiting.done():
                waiting.set_exception(RpcError(METHOD_NOT_FOUND, "The call that asked is over."))
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class Parked:
    """The calls of one client that wait for its answers."""

    def __init__(self, *, key: str, seconds: float = PARKED_SECONDS) -> None:
        self._key = key
        self._seconds = seconds
        self._waiting: dict[str, tuple[Running, asyncio.TimerHandle]] = {}

    def park(self, running: Running, questions: dict[str, Json]) -> Json:
        """Return the result that asks the client, and keep the call until it answers."""
        if len(self._waiting) >= _MOST_PARKED:
            self._give_up(next(iter(self._waiting)))
        state = f"{self._key}.{secrets.token_urlsafe(16)}"
        loop = asyncio.get_running_loop()
        self._waiting[state] = (running, loop.call_later(self._seconds, self._give_up, state))
        return input_required(questions, state)

    def take(self, state: object) -> Running | None:
        """Return the call that a request goes on with, None where it is a new one."""
        found = self._waiting.pop(state, None) if isinstance(state, str) else None
        if found is None:
            return None
        running, timer = found
        timer.cancel()
        return running

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Give all of them up."""
        for state in list(self._waiting):
            self._give_up(state)

    def _give_up(self, state: str) -> None:
        running = self.take(state)
        if running is not None:
            running.cancel()
