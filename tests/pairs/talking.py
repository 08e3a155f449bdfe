"""A client of any dialect that says one thing and answers whatever it is asked, always the same way."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from gateway.model import (
    Answer,
    AnswerQuestion,
    BlockDelta,
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
from gateway.upstream import Asked, Ended, Heard, Opening, Remote

PAINT = ToolSpec(
    name="paint", description="Paints.",
    parameters={"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
)
SETTINGS = Settings(
    client_tools=(PAINT,), tools={"clock": Permission.ALLOW, "calc": Permission.ASK, "search": Permission.ALLOW},
)
PATIENCE = 60.0


async def converse(
    remote: Remote, text: str, *, settings: Settings = SETTINGS, stop_at: int = 0, kindly: bool = True,
) -> list[Heard]:
    """All that was heard of one turn; after `stop_at` deltas, if any, it is interrupted."""
    async with asyncio.timeout(PATIENCE):
        session_id, said = await remote.open(Opening(settings=settings)), SendMessage(content=text)
        return await turn(remote, session_id, said, settings=settings, stop_at=stop_at, kindly=kindly)


async def turn(
    remote: Remote, session_id: str, command: SendMessage, *, settings: Settings = SETTINGS, stop_at: int = 0,
    kindly: bool = True,
) -> list[Heard]:
    heard: list[Heard] = []
    stream, deltas = remote.say(session_id, command, settings), 0
    while True:
        asked: list[Asked] = []
        async with aclosing(stream):
            async for one in stream:
                heard.append(one)
                if isinstance(one, Asked):
                    asked.append(one)
                deltas += isinstance(one, BlockDelta)
                if stop_at and deltas == stop_at:
                    stop_at = 0
                    await remote.interrupt(session_id)
        if not asked or isinstance(heard[-1], Ended):
            return heard
        stream = remote.answer(session_id, [(one, answer(one, kindly)) for one in asked])


def answer(asked: Asked, kindly: bool) -> Answer:
    """Leave is given or not, and whoever asks whether to go on may or may not; the rest is answered in any case."""
    ask = asked.ask
    match ask:
        case QuestionAsk(questions=questions):
            return AnswerQuestion(request_id=asked.ref, selections=_first_of(questions))
        case PermissionAsk():
            return DecidePermission(request_id=asked.ref, granted=kindly)
        case ContinuationAsk():
            return ContinueTurn(request_id=asked.ref, proceed=kindly)
        case RollbackAsk(options=options):
            return RollBack(request_id=asked.ref, option=str(options[0].get("id")))
        case _:
            return ReturnResult(request_id=asked.ref, content="painted")


def _first_of(questions: Sequence[object]) -> dict[str, tuple[int, ...]]:
    return {str(number): (0,) for number in range(len(questions))}
