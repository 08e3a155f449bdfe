"""CAS servers whose streams open, look, resume, beat or end wrongly."""

import asyncio

from aiohttp import web

from conformance.faults.cas.memory import Body, Item, Talk, now
from conformance.faults.cas.server import CasServer
from conformance.faults.fault import fault
from conformance.faults.ledger import Refusal

OPENS, FRAMES = "stream.a_stream_opens_whatever_is_accepted", "stream.frames_have_id_event_and_data"
AFTER, UNKNOWN = "resuming.a_stream_resumes_after_a_cursor", "resuming.an_unknown_cursor_is_refused"
EVERYWHERE = "resuming.a_stream_resumes_after_every_event_while_more_arrive"
OLD, LATE = "stream.a_stream_is_not_handed_an_old_turn", "stream.a_stream_opened_late_misses_nothing"
BEAT, OPEN, SAME = (
    "stream.an_idle_stream_has_a_heartbeat",
    "stream.a_stream_stays_open",
    "stream.everybody_sees_the_same",
)


@fault("CAS-SSE-01", cases=OPENS)
class AcceptNeeded(CasServer):
    """A stream opens only for those who accept one."""

    async def get_stream(self, request: web.Request) -> web.StreamResponse:
        if not self.wants_stream(request):
            raise Refusal(400, "Accept must be text/event-stream.")
        return await super().get_stream(request)


@fault("CAS-SSE-01", cases=OPENS)
class OpensInSilence(CasServer):
    """No comment is sent when a stream opens."""

    async def greet(self, response: web.StreamResponse) -> None:
        return None


@fault("CAS-SSE-02", cases=FRAMES)
class FramesWithoutId(CasServer):
    """Frames have no id line."""

    def frame(self, body: Body) -> bytes:
        return super().frame(body).partition(b"\n")[2]


@fault("CAS-SSE-02", cases=FRAMES)
class FramesWithoutEvent(CasServer):
    """Frames have no event line."""

    def frame(self, body: Body) -> bytes:
        return b"\n".join(line for line in super().frame(body).split(b"\n") if not line.startswith(b"event:"))


@fault("CAS-SSE-02", cases=FRAMES)
class DataInTwoLines(CasServer):
    """The data of a frame is in two lines."""

    def frame(self, body: Body) -> bytes:
        return super().frame(body).replace(b"data: {", b"data: {\ndata: ")


@fault("CAS-SSE-03", cases=AFTER)
class HeaderIgnored(CasServer):
    """Last-Event-ID is ignored."""

    def start(self, request: web.Request, talk: Talk, thread: str | None) -> int:
        return 0 if "Last-Event-ID" in request.headers else super().start(request, talk, thread)


@fault("CAS-SSE-03", cases=AFTER)
class QueryIgnored(CasServer):
    """after_id is ignored."""

    def start(self, request: web.Request, talk: Talk, thread: str | None) -> int:
        return 0 if "after_id" in request.query else super().start(request, talk, thread)


@fault("CAS-SSE-03", "CAS-SSE-05", cases=f"{AFTER} {EVERYWHERE}")
class CursorRepeated(CasServer):
    """The event of the cursor is told again."""

    def start(self, request: web.Request, talk: Talk, thread: str | None) -> int:
        return max(0, super().start(request, talk, thread) - 1)


@fault("CAS-SSE-03", cases=UNKNOWN)
class UnknownCursorsTaken(CasServer):
    """A stream with an unknown cursor begins at the start."""

    def unknown_cursor(self, talk: Talk, cursor: str) -> int:
        return 0


@fault("CAS-SSE-04", cases=LATE)
class TailOnly(CasServer):
    """A stream without a cursor begins with what comes next, though nobody was told the newest turn."""

    def beginning(self, talk: Talk) -> int:
        return len(talk.feed)


@fault("CAS-SSE-04", cases=LATE)
class QuickTurnsMissed(CasServer):
    """A stream without a cursor begins with the turn that runs; one that is over already is missed."""

    def beginning(self, talk: Talk) -> int:
        return super().beginning(talk) if talk.is_busy else len(talk.feed)


@fault("CAS-SSE-04", cases=f"{OLD} {LATE}")
class HistoryFirst(CasServer):
    """A stream without a cursor begins with all that was ever told."""

    def beginning(self, talk: Talk) -> int:
        return 0


@fault("CAS-SSE-04", cases=OLD)
class NewestTurnAgain(CasServer):
    """A stream without a cursor begins with the newest turn, though another stream has told it."""

    def carry(self, talk: Talk, event: Body, thread: str | None) -> None:
        return None


class _Joining(CasServer):
    """Does something wrong where history meets the present."""

    async def pump(
        self, response: web.StreamResponse, talk: Talk, thread: str | None, place: int, forms: set[str]
    ) -> None:
        for item in talk.feed[place:]:
            if self.is_shown(item, talk, thread, forms, is_old=True):
                await response.write(self.frame(item.body))
        await super().pump(response, talk, thread, await self.joined(talk), forms)

    async def joined(self, talk: Talk) -> int:
        raise NotImplementedError


@fault("CAS-SSE-05", cases="telling.threads_are_told_as_listed")
class MessagesBetweenThreadsUntold(CasServer):
    """Streams leave out what one thread sends another, though it is listed."""

    def is_shown(self, item: Item, talk: Talk, thread: str | None, forms: set[str], is_old: bool) -> bool:
        is_kept = item.body["type"] != "agent.thread_message_sent"
        return is_kept and super().is_shown(item, talk, thread, forms, is_old)


@fault("CAS-EV-01", cases="telling.broken_turns_are_told_as_listed")
class InterruptsRetold(CasServer):
    """An interrupt is told with another time than it is listed with."""

    def frame(self, body: Body) -> bytes:
        return super().frame(body | {"created_at": now()} if body["type"] == "user.interrupt" else body)


@fault("CAS-SSE-05", cases="telling.asks_and_answers_are_told_as_listed")
class AnswersToldTwice(CasServer):
    """The result of a custom tool is told twice."""

    def frame(self, body: Body) -> bytes:
        return super().frame(body) * (2 if body["type"] == "user.custom_tool_result" else 1)


@fault("CAS-SSE-05", cases="telling.thoughts_and_tools_are_told_as_listed")
class OutcomesUntold(CasServer):
    """Streams leave out what outcome is wanted, though it is listed."""

    def is_shown(self, item: Item, talk: Talk, thread: str | None, forms: set[str], is_old: bool) -> bool:
        is_kept = item.body["type"] != "user.define_outcome"
        return is_kept and super().is_shown(item, talk, thread, forms, is_old)


@fault("CAS-SSE-05", cases=EVERYWHERE)
class GapBeforeLive(_Joining):
    """What happens between replay and live is lost."""

    async def joined(self, talk: Talk) -> int:
        await asyncio.sleep(0.15)
        return len(talk.feed)


@fault("CAS-SSE-05", cases=EVERYWHERE)
class RepeatedBeforeLive(_Joining):
    """The last event of the replay comes again when the stream goes live."""

    async def joined(self, talk: Talk) -> int:
        stored = [place for place, item in enumerate(talk.feed) if item.form == "stored"]
        return stored[-1] if stored else 0


@fault("CAS-SSE-06", cases=BEAT)
class NoHeartbeat(CasServer):
    """An idle stream is silent."""

    async def beat(self, response: web.StreamResponse) -> None:
        return None


@fault("CAS-SSE-06", cases=BEAT)
class OtherHeartbeat(CasServer):
    """The heartbeat is a ping."""

    async def beat(self, response: web.StreamResponse) -> None:
        await response.write(b": ping\n\n")


@fault("CAS-SSE-07", cases=OPEN)
class ClosedAfterTurns(CasServer):
    """A stream ends with the turn."""

    def is_over(self, talk: Talk) -> bool:
        return super().is_over(talk) or (not talk.is_busy and bool(talk.feed))


@fault("CAS-SSE-07", cases=OPEN)
class ClosedWhileWaiting(CasServer):
    """A stream ends when the turn waits."""

    def is_over(self, talk: Talk) -> bool:
        return super().is_over(talk) or talk.is_waiting


@fault("CAS-SSE-05", "CAS-SSE-07", cases=SAME)
class SecondClassStreams(CasServer):
    """Every second stream is not told everything."""

    streams = 0

    def forms(self, request: web.Request, talk: Talk) -> set[str]:
        self.streams += 1
        return super().forms(request, talk) | ({"second class"} if self.streams % 2 == 0 else set())

    def is_shown(self, item: Item, talk: Talk, thread: str | None, forms: set[str], is_old: bool) -> bool:
        is_kept = "second class" not in forms or item.body["type"] != "agent.thinking"
        return is_kept and super().is_shown(item, talk, thread, forms, is_old)
