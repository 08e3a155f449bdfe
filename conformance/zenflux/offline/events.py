"""Section events: every event by its type, and what it says of its run."""

from collections.abc import Iterator
from typing import Any

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule
from conformance.zenflux import event_shapes
from conformance.zenflux.offline.view import ZenfluxView, hold_event

Found = Iterator[Exchange | str]
NEVER_ON_A_SOCKET = ("ping", "done", "tick")
ALSO = {"message_start": "ZF-EV-12", "content_delta": "ZF-EV-31"}
"""What else is judged by the shape of an event."""
MEMBERS = {"title": "ZF-EV-07", "metadata": "ZF-EV-08", "compressed": "ZF-EV-09"}


def _shape(name: str, ids: str) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for place, payload in view.of(name):
            yield place
            hold_event(payload)

    check.__name__ = f"every_{name}_fits"
    check.__doc__ = f"{name} has its members wherever it is sent."
    return rule(*ids.split(), needs=f"event {name}")(check)


SHAPES = tuple(
    _shape(name, f"{owner} {ALSO.get(name, '')}") for name, owner in event_shapes.EVENTS.items() if name != "ping"
)


def _update(member: str, requirement: str) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for place, payload in view.of("conversation_delta"):
            data: Any = payload.get("data")
            if isinstance(data, dict) and member in data:
                yield place
                hold_event(payload)

    check.__name__ = f"an_update_of_{member}_fits"
    check.__doc__ = f"A conversation_delta with {member} has it in its form."
    return rule(requirement, needs=f"conversation_delta with {member}")(check)


UPDATES = tuple(_update(member, requirement) for member, requirement in MEMBERS.items())


@rule("ZF-EV-01", needs="run")
def session_start_introduces_the_run(view: ZenfluxView) -> Found:
    """session_start names the session and conversation of the envelopes, and the user of the request."""
    for spoken in view.over:
        for start in spoken.run.of("session_start")[:1]:
            yield spoken.exchange
            told = {name: start.data[name] for name in ("session_id", "conversation_id")}
            wanted = {"session_id": spoken.run.session_id, "conversation_id": spoken.run.conversation_id}
            expect.equal("the data of session_start", wanted, told)
            user = spoken.asked.get("user_id") or spoken.asked.get("userId")
            expect.that(user in (None, start.data["user_id"]), f"the user {user}", dict(start.data))


@rule("ZF-EV-02", "ZF-EV-03", needs="session_stopped or session_end")
def ends_name_their_session(view: ZenfluxView) -> Found:
    """session_stopped and session_end have the session of their run."""
    for spoken in view.over:
        for event in spoken.run.of("session_stopped", "session_end"):
            yield spoken.exchange
            with expect.owned(event_shapes.EVENTS[event.type]):
                expect.equal(f"the session of {event.type}", spoken.run.session_id, event.data["session_id"])


@rule("ZF-EV-04", needs="run on a socket")
def pings_are_for_streams_only(view: ZenfluxView) -> Found:
    """No ping, done or tick comes as an event of a run on the socket."""
    for item, said in view.lines:
        payloads = [it.body.get("payload") for it in said if it.body and it.kind == "event" and not it.frame.is_sent]
        kinds = [it.get("type") for it in payloads if isinstance(it, dict) and "session_id" in it]
        if kinds:
            yield item
            expect.equal("events that are not for sockets", [], [it for it in kinds if it in NEVER_ON_A_SOCKET])


@rule("ZF-EV-05", "ZF-EV-06", "ZF-EV-10", needs="event of a conversation")
def conversation_events_name_it(view: ZenfluxView) -> Found:
    """Events of the conversation have its id in their data."""
    for spoken in view.over:
        for event in spoken.run.of("conversation_start", "conversation_delta", "conversation_stop"):
            yield spoken.exchange
            with expect.owned(event_shapes.EVENTS[event.type]):
                expect.equal("its conversation", spoken.run.conversation_id, event.data["conversation_id"])


@rule("ZF-EV-07", needs="new title, and a later look at its conversation")
def a_new_title_is_kept(view: ZenfluxView) -> Found:
    """After a title update the conversation has that title."""
    for spoken in view.over:
        titles = [event.data["title"] for event in spoken.run.of("conversation_delta") if "title" in event.data]
        for item, (name,), answer in view.asked("GET /conversations/{}") if titles else ():
            later = name == spoken.run.conversation_id and item.order > spoken.orders[-1] and answer.is_done
            if later and not _renamed(view, name, item.order):
                yield item
                expect.equal("the title of the conversation", titles[-1], answer.body["data"]["title"])
                break


def _renamed(view: ZenfluxView, name: str, order: int) -> bool:
    changes = [item for item, (it,), _ in view.asked("PUT /conversations/{}") if it == name and item.order < order]
    runs = [it for it in view.spoken if it.run.events and it.run.conversation_id == name and it.orders[0] < order]
    return bool(changes) or len(runs) > 1


@rule("ZF-EV-36", needs="stream of POST /chat, to its end")
def done_ends_a_stream(view: ZenfluxView) -> Found:
    """A stream of POST /chat ends with the server-sent event done, after message_stop, and nothing after it."""
    for item in view.streams:
        names = [told.event.event for told in item.events]
        kinds = next(spoken.run.names for spoken in view.spoken if spoken.exchange is item)
        if item.is_whole and "error" not in kinds:
            yield item
            expect.that("message_stop" in kinds, "message_stop before the end", kinds, "ZF-EV-23")
            expect.equal("the last event, and how often", ["done", 1], [*names[-1:], names.count("done")])


@rule("G-ZF-21", needs="stream of POST /chat, to its end")
def streams_are_framed_plainly(view: ZenfluxView) -> Found:
    """Lines end in LF, events are `data: ` and JSON without an event line, and the last is done with its body."""
    for item in view.streams:
        raw = item.reply.body
        if not item.is_whole:
            continue
        yield item
        expect.that(b"\r" not in raw, "lines that end in LF only", raw[:200].decode("utf-8", "replace"))
        frames = [frame.split("\n") for frame in raw.decode("utf-8", "replace").split("\n\n") if frame.strip(" \n")]
        frames = [frame for frame in frames if not frame[0].startswith(":")]
        strange = [line for frame in frames[:-1] for line in frame if not line.startswith(("data: ", "id: "))]
        expect.equal("lines that are not data or id", [], strange)
        body = expect.parsed(frames[-1][-1].removeprefix("data: "), "the data of done")
        expect.equal("the data of done", {"type": "done", "data": {"type": "done"}}, body)
