"""A client of any dialect that says one thing and answers whatever it is asked, always the same way."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import gateway.model as m
from gateway.ports.remote import DecodedItem, NewRemoteSession, Remote, RemoteAsk, RemoteTurnEnd

PAINT = m.ToolSpec(
    name="paint", description="Paints.",
    parameters={"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
)
SETTINGS = m.Settings(
    client_tools=(PAINT,), tools={"clock": m.Permission.ALLOW, "calc": m.Permission.ASK, "search": m.Permission.ALLOW},
)
PATIENCE = 300.0


async def converse(remote: Remote, text: str, *, settings: m.Settings = SETTINGS) -> list[DecodedItem]:
    """All that was heard of one turn."""
    async with asyncio.timeout(PATIENCE):
        session_id, heard = await remote.open(NewRemoteSession(settings=settings)), list[DecodedItem]()
        stream = remote.start_turn(session_id, m.SendMessage(content=text), settings)
        while True:
            async with aclosing(stream):
                said = [one async for one in stream]
            heard += said
            asked = [one for one in said if isinstance(one, RemoteAsk)]
            if not asked or isinstance(heard[-1], RemoteTurnEnd):
                return heard
            stream = remote.answer(session_id, [(one, answer(one)) for one in asked])


def answer(asked: RemoteAsk) -> m.Answer:
    """The first choice of each, and yes to everything else."""
    ask = asked.ask
    match ask:
        case m.QuestionAsk(questions=questions):
            return m.AnswerQuestion(request_id=asked.ref, selections=_first_of(questions))
        case m.PermissionAsk():
            return m.DecidePermission(request_id=asked.ref, granted=True)
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id=asked.ref, proceed=True)
        case m.RollbackAsk(options=options):
            return m.RollBack(request_id=asked.ref, option=str(options[0].get("id")))
        case _:
            return m.ReturnResult(request_id=asked.ref, content="painted")


def _first_of(questions: Sequence[object]) -> dict[str, tuple[int, ...]]:
    return {str(number): (0,) for number in range(len(questions))}
