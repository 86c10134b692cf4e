"""Calls that wait for the answer of a client which can only be asked in a result."""

import asyncio
from typing import Any

import pytest

from coatcheck.apps.proxy._call import Call
from coatcheck.apps.proxy._exchange import Reply
from coatcheck.apps.proxy._messages import Json, RpcError
from coatcheck.apps.proxy._running import Parked, Running


class Nowhere:
    async def send(self, line: bytes) -> None:
        raise BrokenPipeError


CALL = Call(1, "tools/call", {}, Nowhere())


def asking(told: list[object]) -> Running:
    """Return a call at a server that asks once, and notes how that came out."""

    async def request() -> Reply:
        try:
            answer = await running.ask("elicitation/create", {"message": "Who?"})
        except (RpcError, asyncio.CancelledError) as error:
            told.append(type(error).__name__)
            raise
        told.append(answer)
        return Reply({"content": []})

    running = Running(request(), CALL)
    return running


async def asked(running: Running) -> dict[str, Json]:
    questions = await running.next()
    assert isinstance(questions, dict)
    return questions


async def test_answer_reaches_the_call_that_asked() -> None:
    told: list[object] = []
    running, parked = asking(told), Parked(key="k")

    result: Any = parked.park(running, await asked(running))
    assert parked.take(result["requestState"]) is running
    running.take_answers({"q1": {"action": "accept"}})

    assert isinstance(await running.next(), Reply)
    assert told == [{"action": "accept"}]
    assert result["inputRequests"]["q1"]["params"] == {"message": "Who?"}


async def test_question_asked_while_the_client_answers_another_waits_for_its_turn() -> None:
    told: list[object] = []
    running = asking(told)
    await asked(running)

    later = asyncio.create_task(running.ask("elicitation/create", {"message": "Where?"}))
    await asyncio.sleep(0)
    running.take_answers({"q1": {"action": "accept"}})
    assert await asked(running) == {
        "q2": {"method": "elicitation/create", "params": {"message": "Where?"}}
    }
    running.take_answers({"q2": {"action": "decline"}})

    assert await later == {"action": "decline"}
    assert isinstance(await running.next(), Reply)
    assert told == [{"action": "accept"}]


@pytest.mark.parametrize("given", [None, {}, {"q1": "text"}, {"q2": {}}, [1]])
async def test_question_without_an_answer_is_refused_at_the_server(given: object) -> None:
    told: list[object] = []
    running = asking(told)
    await asked(running)

    running.take_answers(given)

    with pytest.raises(RpcError, match="gave no answer"):
        await running.next()
    assert told == ["RpcError"]


async def test_call_whose_answer_never_comes_is_cancelled() -> None:
    told: list[object] = []
    running, parked = asking(told), Parked(key="k", seconds=0)

    result: Any = parked.park(running, await asked(running))
    while not told:
        await asyncio.sleep(0)

    assert told == ["CancelledError"]
    assert parked.take(result["requestState"]) is None
    assert len(parked) == 0


async def test_calls_of_a_client_that_goes_are_cancelled() -> None:
    told: list[object] = []
    running, parked = asking(told), Parked(key="k")
    parked.park(running, await asked(running))

    parked.close()
    while not told:
        await asyncio.sleep(0)

    assert told == ["CancelledError"]


@pytest.mark.parametrize("state", [None, 7, "k.unknown", ["k"], {}])
async def test_state_that_was_not_given_out_is_that_of_no_call(state: object) -> None:
    assert Parked(key="k").take(state) is None


async def test_state_can_be_used_once() -> None:
    running, parked = asking([]), Parked(key="k")
    result: Any = parked.park(running, await asked(running))

    assert parked.take(result["requestState"]) is running
    assert parked.take(result["requestState"]) is None
    running.cancel()


async def test_question_beside_a_call_that_is_over_is_refused() -> None:
    done = asyncio.Event()

    async def request() -> Reply:
        await done.wait()
        return Reply({"content": []})

    running = Running(request(), CALL)
    question = asyncio.create_task(running.ask("roots/list", {}))
    await asked(running)

    done.set()

    with pytest.raises(RpcError, match="is over"):
        await question


async def test_of_too_many_calls_the_one_that_waits_for_longest_is_given_up() -> None:
    told: list[list[object]] = [[] for _ in range(65)]
    parked = Parked(key="k")

    states: list[Any] = []
    for each in told:
        running = asking(each)
        states.append(parked.park(running, await asked(running))["requestState"])
    await asyncio.sleep(0)

    assert told == [["CancelledError"], *[[]] * 64]
    assert parked.take(states[0]) is None
    assert parked.take(states[1]) is not None
    parked.close()
