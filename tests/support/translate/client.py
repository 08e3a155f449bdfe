"""A client of any dialect that says one thing and answers whatever it is asked, always the same way."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from gateway.model import (
    Answer,
    AnswerQuestion,
    ContinuationAsk,
    ContinueTurn,
    DecidePermission,
    Permission,
    PermissionAsk,
    QuestionAsk,
    ReturnResult,
    RollBack,
    RollbackAsk,
    SendMessage,
    Settings,
    ToolSpec,
)
from gateway.ports.remote import DecodedItem, NewRemoteSession, Remote, RemoteAsk, RemoteTurnEnd

PAINT = ToolSpec(
    name="paint", description="Paints.",
    parameters={"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
)
SETTINGS = Settings(
    client_tools=(PAINT,), tools={"clock": Permission.ALLOW, "calc": Permission.ASK, "search": Permission.ALLOW},
)
PATIENCE = 60.0


async def converse(remote: Remote, text: str, *, settings: Settings = SETTINGS) -> list[DecodedItem]:
    """All that was heard of one turn."""
    async with asyncio.timeout(PATIENCE):
        session_id, heard = await remote.open(NewRemoteSession(settings=settings)), list[DecodedItem]()
        stream = remote.start_turn(session_id, SendMessage(content=text), settings)
        while True:
            async with aclosing(stream):
                said = [one async for one in stream]
            heard += said
            asked = [one for one in said if isinstance(one, RemoteAsk)]
            if not asked or isinstance(heard[-1], RemoteTurnEnd):
                return heard
            stream = remote.answer(session_id, [(one, answer(one)) for one in asked])


def answer(asked: RemoteAsk) -> Answer:
    """The first choice of each, and yes to everything else."""
    ask = asked.ask
    match ask:
        case QuestionAsk(questions=questions):
            return AnswerQuestion(request_id=asked.ref, selections=_first_of(questions))
        case PermissionAsk():
            return DecidePermission(request_id=asked.ref, granted=True)
        case ContinuationAsk():
            return ContinueTurn(request_id=asked.ref, proceed=True)
        case RollbackAsk(options=options):
            return RollBack(request_id=asked.ref, option=str(options[0].get("id")))
        case _:
            return ReturnResult(request_id=asked.ref, content="painted")


def _first_of(questions: Sequence[object]) -> dict[str, tuple[int, ...]]:
    return {str(number): (0,) for number in range(len(questions))}
