"""Conversations to translate: what a demo agent said and did, as a log has it, and told in a dialect."""

from collections.abc import Sequence

import gateway.model as m
from gateway.ids import make_mint
from gateway.translate import DialectWriter, LossCounter, RecordWriter, Translation
from tests.support.dialect_tables import dialect, table
from tests.support.directives import directives
from tests.support.gateway_server import Served, until

DIRECTIVES = directives(burst=50, without=('/tool search {"wrong": 1}', "/max-steps", "/slow 3", "/card"))
SETTINGS = m.Settings(
    client_tools=(m.ToolSpec(name="paint", description="Paints.", parameters={"type": "object"}),),
    tools={"clock": m.Permission.ALLOW, "calc": m.Permission.ALLOW, "search": m.Permission.ASK},
)


async def conversation(served: Served, *directives: str, settings: m.Settings = SETTINGS) -> list[m.Record]:
    """The records of a session in which these were said, and everything that was asked was answered."""
    sessions = served.gateway.sessions
    view = await sessions.create("", "demo", settings=settings)
    for words in directives:
        await sessions.submit("", view.session_id, [m.SendMessage(content=words)])
        await until(lambda: view.status is not m.SessionStatus.RUNNING)
        while view.status is m.SessionStatus.SUSPENDED:
            await sessions.submit("", view.session_id, [answer(asked) for asked in view.asks.values()])
            await until(lambda: view.status is not m.SessionStatus.RUNNING)
    await sessions.get("", view.session_id)  # what has happened is in the log only when it can be shown
    return list(await sessions.records("", view.session_id))


def answer(asked: m.OpenAsk) -> m.AnyCommand:
    request_id, ask = asked.request_id, asked.ask
    match ask:
        case m.QuestionAsk(questions=questions):
            return m.AnswerQuestion(request_id=request_id, selections={str(n): (0,) for n in range(len(questions))})
        case m.PermissionAsk():
            return m.DecidePermission(request_id=request_id, granted=True)
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id=request_id)
        case m.RollbackAsk(options=options):
            return m.RollBack(request_id=request_id, option=str(options[0]["id"]))
        case m.ClientToolAsk():
            return m.ReturnResult(request_id=request_id, content="painted")


def told(records: Sequence[m.Record], name: str) -> bytes:
    """What a client of this dialect would have got of these records."""
    writing = DialectWriter(dialect(name), table(name), LossCounter(None, table(name)))
    return b"".join([*map(writing.take, records), writing.flush()])


def translated(stream: bytes, source: str | None, target: str | None) -> tuple[bytes, Translation, LossCounter]:
    tables = [None if name is None else table(name) for name in (source, target)]
    losses = LossCounter(*tables)
    writing = RecordWriter() if target is None else DialectWriter(dialect(target), table(target), losses)
    spoken = None if source is None else dialect(source)
    translation = Translation(spoken, tables[0], writing, clock=lambda: 1_700_000_000.0, mint=make_mint("x"))
    out = b"".join([*translation.feed(stream), *translation.end()])
    return out, translation, losses
