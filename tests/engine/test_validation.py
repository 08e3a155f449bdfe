"""Settings are checked against the agent's card, secrets put apart, and outputs held to their schema."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from msgspec.structs import replace

import gateway.model as m
from gateway.backends import DemoBackend, EventWriter
from gateway.engine.validation import validate_settings
from gateway.errors import GatewayError, Invalid
from gateway.ports import BackendEvent, Turn
from tests.support.engine.engine_fixture import CARD, EngineFixture, lawful


def test_secrets_are_put_apart_and_stay_so() -> None:
    once = validate_settings(CARD, m.Settings(options={"api_key": "hush", "tone": "warm"}))
    assert once.options == {"tone": "warm"}
    assert once.secrets == {"api_key": "hush"}
    assert validate_settings(CARD, once) == once


def test_a_secret_can_be_set_anew() -> None:
    assert validate_settings(CARD, m.Settings(secrets={"api_key": "old"}, options={"api_key": "new"})).secrets == {
        "api_key": "new"
    }


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (m.Settings(tools={"hammer": m.Permission.ALLOW}), "no tool 'hammer'; it has 'clock', 'calc'"),
        (m.Settings(options={"volume": "11"}), "no option 'volume'"),
        (m.Settings(options={"size": "huge"}), "takes 'small', 'large', not 'huge'"),
        (m.Settings(client_tools=(m.ToolSpec(name="a"), m.ToolSpec(name="a"))), "two client tools are named 'a'"),
        (
            m.Settings(tools={"calc": m.Permission.ASK}, client_tools=(m.ToolSpec(name="calc"),)),
            "name of an enabled server tool",
        ),
        (m.Settings(client_tools=(m.ToolSpec(name="clock"),)), "name of an enabled server tool"),
    ],
)
def test_what_does_not_fit_is_named(settings: m.Settings, complaint: str) -> None:
    with pytest.raises(GatewayError, match=complaint):
        validate_settings(CARD, settings)


def test_a_client_tool_may_have_the_name_of_a_server_tool_that_is_off() -> None:
    settings = m.Settings(tools={"clock": m.Permission.ALLOW}, client_tools=(m.ToolSpec(name="calc"),))
    assert validate_settings(CARD, settings) == settings


def test_an_agent_without_client_tools_takes_none() -> None:
    card = replace(CARD, capabilities=m.AgentCapabilities(client_tools=False))
    with pytest.raises(GatewayError, match="does not take tools"):
        validate_settings(card, m.Settings(client_tools=(m.ToolSpec(name="mine"),)))


ELSEWHERE = {"$ref": "http://127.0.0.1:9/schema.json"}
"""A schema may not make the server fetch anything."""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def answered(text: str, schema: dict[str, Any] | None = SCHEMA) -> m.TurnEnded:
    async def play(turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        for words in ("not this", text):
            writer = EventWriter(turn)
            yield writer.start_message()
            for said in writer.text(words):
                yield said
            yield writer.end_message()

    stage = EngineFixture(play)
    session = await stage.session()
    session.submit([m.SendMessage(content="where?", output_schema=schema)])
    await stage.until(session, m.TurnEnded)
    records = await stage.records(session)
    lawful(records)
    event = records[-1].event
    assert isinstance(event, m.TurnEnded)
    return event


@pytest.mark.parametrize("text", ['{"city":"Lima"}', ' {"city":"Lima"}\n', '```json\n{"city":"Lima"}\n```'])
async def test_what_fits_is_the_result(text: str) -> None:
    ended = await answered(text)
    assert (ended.outcome, ended.result) == (m.Outcome.COMPLETED, {"city": "Lima"})


@pytest.mark.parametrize(("text", "told"), [
    ("Lima", "not JSON"), ("", "not JSON"), ('{"town":"Lima"}', "city"), ('{"city":7}', "does not fit"),
    ("[]", "object"), ("[" * 300 + "]" * 300, "nested 300 levels deep; at most 150 levels are possible"),
])
async def test_what_does_not_fit_is_a_failure_with_the_reason(text: str, told: str) -> None:
    ended = await answered(text)
    assert ended.outcome is m.Outcome.FAILED
    assert ended.result is None
    assert ended.fault is not None
    assert ended.fault.code is m.FaultCode.UNSUPPORTED
    assert told in ended.fault.message


async def test_without_a_schema_there_is_no_result() -> None:
    ended = await answered('{"city":"Lima"}', schema=None)
    assert (ended.outcome, ended.result) == (m.Outcome.COMPLETED, None)


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"properties": 7}, {"$ref": "#/nowhere"}, ELSEWHERE])
async def test_what_is_no_schema_is_refused_before_anything_starts(schema: dict[str, Any]) -> None:
    stage = EngineFixture(DemoBackend().run)
    session = await stage.session()
    with pytest.raises(Invalid, match="not a JSON Schema") as refused:
        session.submit([m.SendMessage(content="x", output_schema=schema)])
    assert "sending request" not in refused.value.message
    assert len(await stage.records(session)) == 1


async def test_the_demo_agent_answers_as_the_schema_asks() -> None:
    stage = EngineFixture(DemoBackend().run)
    session = await stage.session()
    session.submit([m.SendMessage(content="/json", output_schema=SCHEMA)])
    await stage.until(session, m.TurnEnded)
    ended = (await stage.records(session))[-1].event
    assert isinstance(ended, m.TurnEnded)
    assert isinstance(ended.result["city"], str)
