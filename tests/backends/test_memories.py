"""The memories that fit a message reach agents: models in the system text, Python functions as `turn.memories`."""

from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.backends.memories import HEADING, with_memories
from tests.support.backends.function_backends import function_backend
from tests.support.backends.messages_api import message, text
from tests.support.backends.model_services import says, talked, turn_of
from tests.support.backends.turn_driver import tell

TEA = m.MemoryRef(number=7, content="Likes\n tea.", skill="kitchen")


def test_the_system_text_ends_with_the_memories() -> None:
    assert with_memories("Be brief.", ()) == "Be brief."
    assert with_memories(None, ()) is None
    assert with_memories("Be brief.", [TEA]) == f"Be brief.\n\n{HEADING}\n- Likes tea."
    assert with_memories(None, [TEA]) == f"{HEADING}\n- Likes tea."


@pytest.mark.parametrize(("service", "answer"), [("openai", says("ok")), ("anthropic", message(text(0, "ok")))])
async def test_a_model_has_them_in_its_system_text(service: str, answer: Any) -> None:
    for memories in ((TEA,), ()):
        turn = turn_of(settings=m.Settings(system="Be brief."))
        turn.memories = memories
        _, server = await talked(service, [answer], turn)
        body = orjson.loads(server.asked[0].body)
        system = body["system"] if service == "anthropic" else body["messages"][0]["content"]
        assert ("- Likes tea." in str(system)) is bool(memories)


async def test_a_function_has_them() -> None:
    async def agent(turn: Any, settings: Any) -> str:
        return f"{settings.system}|{[one.number for one in turn.memories]}"

    def plain(turn: Any) -> str:
        return str(turn.memories[0].content)

    told = await tell("go", backend=function_backend(agent), memories=[TEA])
    assert told.text == f"{HEADING}\n- Likes tea.|[7]"
    assert (await tell("go", backend=function_backend(agent))).text == "None|[]"
    assert (await tell("go", backend=function_backend(plain), memories=[TEA])).text == "Likes\n tea."
