"""A conversation with a server of Blade, led by our own client of it: what it hears, and how it answers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import gateway.model as m
from adapters.blade import DIALECT
from adapters.blade.client.remote import Remote
from gateway.ports.remote import RemoteAddress, RemoteAsk, RemoteTurnEnd, Timeouts
from tests.support.dialects.blade.facts import CheckedDecoder

PATIENCE = Timeouts(connect=10, first_byte=20, idle=20, total=40, attempts=3)
HASTE = replace(PATIENCE, connect=2, first_byte=0.5, idle=0.5, total=5)


@asynccontextmanager
async def remote(
    address: str, key: str = "", patience: Timeouts = PATIENCE, agent: str | None = None,
) -> AsyncIterator[Remote]:
    assert DIALECT.remote is not None
    made: Remote = DIALECT.remote(RemoteAddress(url=address, key=key, agent=agent, patience=patience))
    try:
        yield made
    finally:
        await made.close()


def kind(asked: RemoteAsk) -> m.Answer:
    """Yes to everything."""
    match asked.ask:
        case m.QuestionAsk(questions=questions):
            picks = {str(number): (0,) for number, question in enumerate(questions) if question.options}
            words = {str(number): "nine" for number, question in enumerate(questions) if not question.options}
            return m.AnswerQuestion(request_id="r", selections=picks, custom=words)
        case m.PermissionAsk():
            return m.DecidePermission(request_id="r", granted=True)
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id="r")
        case m.RollbackAsk(options=options):
            return m.RollBack(request_id="r", option=options[-1]["id"])
    return m.ReturnResult(request_id="r", content="nine degrees")


def unkind(asked: RemoteAsk) -> m.Answer:
    match asked.ask:
        case m.QuestionAsk(questions=questions):
            words = {str(number): "neither" for number in range(len(questions))}
            return m.AnswerQuestion(request_id="r", custom=words, message="!")
        case m.PermissionAsk():
            return m.DecidePermission(request_id="r", granted=False, reason="not today")
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id="r", proceed=False)
        case m.RollbackAsk():
            return m.RollBack(request_id="r")
    return m.ReturnResult(request_id="r", content="it rains", is_error=True)


def absent(asked: RemoteAsk) -> m.Answer:
    return m.Withdraw(request_id="r")


async def talk(
    server: Remote, session_id: str, message: Any, answer: Any = kind, *, settings: m.Settings | None = None,
    others: Sequence[Remote] = (), ear: CheckedDecoder | None = None,
) -> CheckedDecoder:
    """One turn from its first word to its last; each answer may be given by another client."""
    ear = ear or CheckedDecoder()
    ear.go_on()
    command = message if isinstance(message, m.SendMessage | m.Compact) else m.SendMessage(content=message)
    await _hear(ear, server.start_turn(session_id, command, settings or m.Settings()))
    answering = iter(others)
    while ear.asked and not ear.is_over:
        ear.wait(ear.asked)
        asked, ear.asked = ear.asked, []
        ear.go_on()
        who = next(answering, server)
        await _hear(ear, who.answer(session_id, [(one, answer(one)) for one in asked]))
    assert ear.is_over, "a turn ends, or asks"
    return ear


async def _hear(ear: CheckedDecoder, chat: Any) -> None:
    async with asyncio.timeout(40), aclosing(chat) as stream:
        async for heard in stream:
            assert not ear.is_over, "nothing follows the end"
            ear.take([heard])
            if isinstance(heard, RemoteTurnEnd):
                ear.is_over = True
