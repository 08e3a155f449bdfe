"""Servers that are wrong about the transport, about who hears what, and about events beside a chat."""

import asyncio
from typing import Any

from conformance.faults.blade.bending import bending, setting, where, without
from conformance.faults.blade.engine import socket_server
from conformance.faults.blade.ledger import Body, Refusal, Session
from conformance.faults.blade.script import Move, script
from conformance.faults.blade.server import BladeServer
from conformance.faults.fault import fault

LIVE, RESUMED = "gap.a_subscription_is_live", "gap.a_subscription_is_resumed_after_its_cursor"
TRANSPORTS = "socket.every_transport_is_served socket.packets_are_engine_io_4"
STOPS = "stop.a_stopped_chat_is_interrupted stop.a_stop_may_come_from_elsewhere_and_twice"


@fault("BL-WS-01", cases=TRANSPORTS)
class PollingOnly(BladeServer):
    """There is no websocket."""

    def engine(self) -> Any:
        return socket_server(transports=["polling"], allow_upgrades=False)


@fault("BL-WS-01", cases="socket.malformed_events_do_no_harm")
class WedgedByNonsense(BladeServer):
    """An event without a proper body leaves the server of no use."""

    wedged = False

    def handler(self, name: str) -> Any:
        work = super().handler(name)

        async def handle(sid: str, body: Any = None) -> Any:
            self.wedged = self.wedged or not isinstance(body, dict)
            return await work(sid, body)

        return handle

    def check_room(self, session: Session) -> None:
        super().check_room(session)
        if self.wedged:
            raise Refusal(500, "out of order")


@fault("BL-WS-02", cases="socket.a_connection_needs_a_token")
class AnybodyMayConnect(BladeServer):
    """The socket asks for no token."""

    async def connect(self, sid: str, environ: Any, auth: Any = None) -> None:
        """Everybody is welcome."""


@fault("BL-WS-03", cases="socket.subscribers_hear_a_chat")
class SubscribersUnheard(BladeServer):
    """Only the sender hears a chat."""

    async def on_session_subscribe(self, sid: str, body: Body) -> Any:
        return {"status": "ok"}


@fault("BL-WS-03", "BL-WS-04", cases="socket.only_subscribers_hear_a_chat socket.who_unsubscribes_hears_no_more")
class EverybodyHears(BladeServer):
    """Every connection hears every chat."""

    def room(self, session: Session, name: str) -> str | None:
        return None


@fault("BL-WS-04", cases="socket.who_unsubscribes_hears_no_more")
class OnceAndForAll(BladeServer):
    """session:unsubscribe changes nothing."""

    async def on_session_unsubscribe(self, sid: str, body: Body) -> Any:
        return {"status": "ok"}


@fault("BL-WS-05", cases="socket.messages_may_be_parts")
class OnlyStrings(BladeServer):
    """Parts are refused."""

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        if isinstance(body.get("message"), list):
            raise Refusal(400, "message must be a string")
        return await super().on_chat_send(sid, body)


@fault("BL-WS-05", cases="socket.unused_fields_may_be_null")
class NoNulls(BladeServer):
    """Fields that are null are refused."""

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        if None in body.values():
            raise Refusal(400, "null is no value")
        return await super().on_chat_send(sid, body)


@fault("BL-WS-06", cases=STOPS)
class StopIgnored(BladeServer):
    """chat:stop stops nothing."""

    async def on_chat_stop(self, sid: str, body: Body) -> Any:
        return {"status": "stopping"}


@fault("BL-WS-06", cases="stop.a_stopped_chat_is_interrupted")
class StoppedTurnsComplete(BladeServer):
    """A stopped turn ends as completed."""

    async def close(self, session: Session, status: str) -> None:
        await super().close(session, "completed")


@fault("BL-WS-07", cases="socket.a_compaction_is_acknowledged")
class CompactionWithoutStatus(BladeServer):
    """chat:compact is acknowledged with nothing."""

    bends = bending({"ack.compact": setting(status=True)})


@fault("BL-WS-07", cases="socket.a_compaction_is_acknowledged")
class CompactionUnseen(BladeServer):
    """A compaction leaves no trace in the history."""

    bends = bending({"messages": lambda turns: [turn for turn in turns if turn["kind"] == "message"]})


@fault("BL-WS-07", cases="socket.a_compacted_session_goes_on")
class CompactedForGood(BladeServer):
    """After a compaction the session is stuck."""

    def compact(self, session: Session, trigger: str) -> None:
        super().compact(session, trigger)
        session.run = "stuck"


@fault("BL-WS-08", cases="socket.a_chat_end_says_how_it_ended")
class ResultWithoutHeadless(BladeServer):
    """Every chat has a result."""

    bends = bending({"chat:end": where(setting(result={"output": "Hello"}), result=None)})


@fault("BL-WS-06", cases="stop.a_question_is_stopped_once")
class StoppedTwice(BladeServer):
    """A question that is stopped ends its chat twice."""

    async def stop_waiting(self, session: Session) -> Body:
        await self.tell(session, "chat:end", {"session_id": session.id, "status": "interrupted", "result": None})
        return await super().stop_waiting(session)


@fault("BL-GAP-30", cases=LIVE)
class PastUnasked(BladeServer):
    """A subscription that names a cursor is told the past, though it does not ask to resume."""

    def begins_at(self, session: Session, body: Body) -> int:
        return super().begins_at(session, body | {"resume": "after_sequence" in body})


@fault("BL-GAP-30", cases=RESUMED)
class CursorsIgnored(BladeServer):
    """A subscription that is resumed is told everything."""

    def begins_at(self, session: Session, body: Body) -> int:
        return super().begins_at(session, {**body, "after_sequence": 0})


@fault("BL-GAP-30", cases=RESUMED)
class NeverResumed(BladeServer):
    """A subscription cannot be resumed."""

    def begins_at(self, session: Session, body: Body) -> int:
        return len(session.told)


@fault("BL-WS-08", cases="socket.a_chat_end_says_how_it_ended")
class EveryFailureIsOfATool(BladeServer):
    """The finish_reason of any failure is tool_error."""

    bends = bending({"chat:end": where(setting(finish_reason="tool_error"), status="failed")})


@fault("BL-WS-08", cases="socket.a_chat_end_says_how_it_ended")
class FinishedByStop(BladeServer):
    """The finish_reason is stop."""

    bends = bending({"chat:end": setting(finish_reason="stop")})


@fault("BL-WS-09", cases="socket.other_events_are_complete")
class ErrorsWithoutCode(BladeServer):
    """system:error has no code."""

    bends = bending({"system:error": without("code")})


@fault("BL-WS-09", cases="socket.other_events_are_complete")
class UpdatesOfNoSession(BladeServer):
    """session:updated does not say which."""

    bends = bending({"session:updated": without("session_id")})


@fault("BL-WS-10", cases="socket.planning_calls_no_tools")
class PlanningIsDoing(BladeServer):
    """Tools are called while planning."""

    def moves(self, message: str, mode: str | None) -> list[Move]:
        return script(message)


# -- what the specification leaves open --------------------------------------------------------------------------------


@fault("BL-GAP-02", cases="gap.who_sends_hears")
class SendersMustSubscribe(BladeServer):
    """Who has not subscribed does not hear the chat it starts."""

    async def join(self, sid: str, session: Session) -> None:
        """Nobody joins by sending."""


@fault("BL-GAP-03", cases="gap.incomplete_messages_are_refused_in_words")
class ErrorsForEverybody(BladeServer):
    """A refusal is told to every connection."""

    async def refuse(self, sid: str, name: str, body: Any, refusal: Refusal) -> Any:
        told = {"message": refusal.words, "code": refusal.status}
        await self.io.emit("system:error", told)


@fault("BL-GAP-08", cases="gap.patches_are_counted")
class PatchesUncounted(BladeServer):
    """Every patch has the sequence 1."""

    bends = bending({"turn:patch": setting(sequence=1)})


@fault("BL-GAP-10", cases="gap.every_event_names_its_session")
class StartOfNoSession(BladeServer):
    """turn:start has only role and turn_id."""

    bends = bending({"turn:start": lambda turn: {name: turn[name] for name in ("turn_id", "role", "status")}})


@fault("BL-GAP-17", cases="gap.a_busy_session_refuses")
class BusySessionsQueue(BladeServer):
    """A second message waits for its turn."""

    async def on_chat_send(self, sid: str, body: Body) -> Any:
        session = self.sessions.get(str(body.get("session_id")))
        if session is not None and session.task is not None:
            await asyncio.wait({session.task})
        return await super().on_chat_send(sid, body)


@fault("BL-GAP-22", cases="stop.a_stop_is_acknowledged")
class StopUnacknowledged(BladeServer):
    """chat:stop is acknowledged with nothing."""

    async def on_chat_stop(self, sid: str, body: Body) -> Any:
        await super().on_chat_stop(sid, body)


@fault("BL-GAP-23", cases="gap.a_failure_is_told_in_order")
class FailsWithoutWords(BladeServer):
    """A failure is not told as system:error."""

    def events(self, session: Session, name: str, body: Any) -> list[tuple[str, Any]]:
        return [] if name == "system:error" else [(name, body)]


@fault("BL-GAP-31", cases="gap.runs_are_acknowledged")
class RunsWithoutId(BladeServer):
    """chat:end does not repeat the chat_run_id."""

    bends = bending({"chat:end": without("chat_run_id")})


@fault("BL-WS-06", cases="stop.a_run_is_stopped_by_its_id")
class RunsAreNotStopped(BladeServer):
    """A stop that names its run stops nothing."""

    async def on_chat_stop(self, sid: str, body: Body) -> Any:
        return {"status": "idle"} if "chat_run_id" in body else await super().on_chat_stop(sid, body)
