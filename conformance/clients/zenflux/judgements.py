"""What ZenFlux clients are judged by: frames on the socket, requests, and connections."""

from typing import Any
from uuid import UUID

from conformance.clients import evidence
from conformance.clients.evidence import Answer, Message
from conformance.clients.judgement import DoesNotApply, judges
from conformance.clients.moves import Asked
from conformance.clients.situations import CUTS
from conformance.clients.tape import Frame, Request, Tape
from conformance.clients.zenflux.player import OPTIONS
from conformance.faults.zenflux.streams import SPELLINGS
from conformance.kit.expect import NotTestable, that

METHODS = ("chat.send", "chat.abort")
TYPES: dict[str, Any] = {
    "conversation_id": str, "agent_id": str, "stream": bool, "background_tasks": list, "files": list,
    "variables": dict,
}  # fmt: skip
SOCKET = "/ws/chat"
MOST_SOCKETS = 8


def requests_on_socket(tape: Tape) -> list[Frame]:
    """The frames other than pings."""
    found = [frame for frame in tape.frames if frame.body.get("type") != "ping"]
    if not found and tape.of("POST", "/chat"):
        raise DoesNotApply("the client chats over HTTP and not over the socket")
    if not found:
        raise NotTestable("the client sent no frame")
    return found


def sockets(tape: Tape) -> list[Request]:
    found = tape.of("GET", SOCKET)
    if not found and tape.of("POST", "/chat"):
        raise DoesNotApply("the client chats over HTTP and not over the socket")
    return found


def chats(tape: Tape) -> list[tuple[Frame | Request, dict[str, Any]]]:
    """What was sent to begin a run, over the socket or over HTTP, with its parameters in one spelling."""
    frames = [(it, it.body.get("params")) for it in tape.frames if it.name == "chat.send"]
    found: list[tuple[Frame | Request, dict[str, Any]]] = []
    found += [(it, params if isinstance(params, dict) else {}) for it, params in frames]
    found += [(it, _spelled(it.body)) for it in tape.of("POST", "/chat")]
    return found


def messages(tape: Tape) -> list[Message]:
    assigned = [talk for _, talk in tape.meta.get("assigned", ())]
    return [
        Message(it.at, str(params.get("message")), assigned[place] if place < len(assigned) else "", it.turns_before)
        for place, (it, params) in enumerate(chats(tape))
    ]  # fmt: skip


def answers(tape: Tape) -> list[Answer]:
    """What the client answered; a confirmation may name its request or its session."""
    found = []
    for place, request in enumerate(it for it in tape.requests if it.method == "POST"):
        steps = request.path.strip("/").split("/")
        for ask in tape.asks:
            is_named = len(steps) >= 2 and steps[1] in (ask.ref, ask.session)
            if is_named and _kind_of(steps) in (ask.kind, "confirmation"):
                found.append(Answer(request.at, ask.ref, ask.kind, request, place))
    return found


def _kind_of(steps: list[str]) -> str:
    if steps[0] == "human-confirmation":
        return "confirmation"
    return {"confirm_continue": str(Asked.CONTINUATION), "rollback": str(Asked.ROLLBACK)}.get(steps[-1], "")


def _spelled(body: Any) -> dict[str, Any]:
    known: dict[str, str] = SPELLINGS
    return {known.get(str(name), str(name)): value for name, value in body.items()} if isinstance(body, dict) else {}


def _responses(tape: Tape, kind: Asked) -> list[Any]:
    found = evidence.answers_each(tape, answers(tape), kind)
    return [it.value.body.get("response") if isinstance(it.value.body, dict) else None for it in found]


# -- frames and requests ----------------------------------------------------------------------------------------------


@judges("ZF-CL-FRAME-01")
def frames_are_requests(tape: Tape) -> None:
    """Every frame is a request with type, id, method and params; or a ping."""
    for frame in requests_on_socket(tape):
        fits = frame.body.get("type") == "req" and isinstance(frame.body.get("params"), dict)
        that(fits and isinstance(frame.body.get("method"), str), '{"type": "req", id, method, params}', frame.body)


@judges("ZF-CL-FRAME-02")
def ids_are_uuids(tape: Tape) -> None:
    """Every request has an id of its own, a UUID of version 4."""
    names = [frame.body.get("id") for frame in requests_on_socket(tape)]
    for name in names:
        that(_is_uuid(name), "id: a UUID of version 4", name)
    that(len(set(names)) == len(names), "another id for every request", names)


@judges("ZF-CL-FRAME-03")
def methods_are_known(tape: Tape) -> None:
    """The method of a request is chat.send or chat.abort."""
    for frame in requests_on_socket(tape):
        that(frame.body.get("method") in METHODS, f"one of the methods {', '.join(METHODS)}", frame.body)


@judges("ZF-CL-SEND-01")
def sends_what_is_needed(tape: Tape) -> None:
    """A chat has message and user_id, and other parameters of their types."""
    if not chats(tape):
        raise NotTestable("the client sent no message")
    for _, params in chats(tape):
        for name in ("message", "user_id"):
            that(isinstance(params.get(name), str), f"{name}: a string", params)
        for name, kind in TYPES.items():
            that(params.get(name) is None or isinstance(params[name], kind), f"{name}: a {kind.__name__}", params)


@judges("ZF-CL-SEND-02", "plain")
def stays_in_the_conversation(tape: Tape) -> None:
    """A further message names the conversation of the first."""
    evidence.kept_session(messages(tape))


@judges("ZF-CL-SEND-03", "plain")
def waits_for_the_end(tape: Tape) -> None:
    """A further message is sent when the run before is over."""
    evidence.sent_in_turn(messages(tape))


# -- events -----------------------------------------------------------------------------------------------------------


@judges("ZF-CL-EV-01", "echo")
def joins_deltas(tape: Tape) -> None:
    """The deltas of a block are joined as they come."""
    evidence.echoed_reply(tape, messages(tape))


@judges("ZF-CL-EV-02", "every_event")
def takes_every_event(tape: Tape) -> None:
    """The client takes every event of the protocol, and goes on."""
    evidence.came_through(messages(tape))


@judges("ZF-CL-EV-03", "endings")
def takes_every_ending(tape: Tape) -> None:
    """A run is over with message_stop, session_end, session_stopped or error."""
    evidence.came_through(messages(tape), len(tape.meta["replies"]))


@judges("ZF-CL-TOL-01", "unknown_events")
def ignores_events(tape: Tape) -> None:
    """Events of unknown types are ignored."""
    evidence.came_through(messages(tape))


@judges("ZF-CL-TOL-02", "unknown_members")
def ignores_members(tape: Tape) -> None:
    """Unknown members of frames and events are ignored."""
    evidence.came_through(messages(tape))


@judges("ZF-CL-TOL-03", "heartbeats")
def ignores_ticks(tape: Tape) -> None:
    """Ticks within an answer are no part of it."""
    evidence.came_through(messages(tape))


# -- confirmations ----------------------------------------------------------------------------------------------------


@judges("ZF-CL-HITL-01", "confirmation_approved")
def approves(tape: Tape) -> None:
    """What the person approves is answered with approve."""
    for response in _responses(tape, Asked.PERMISSION):
        that(response == "approve", 'response: "approve"', response)


@judges("ZF-CL-HITL-02", "confirmation_rejected")
def rejects(tape: Tape) -> None:
    """What the person rejects is answered with reject."""
    for response in _responses(tape, Asked.PERMISSION):
        that(response == "reject", 'response: "reject"', response)


@judges("ZF-CL-HITL-03", "question")
def chooses(tape: Tape) -> None:
    """A question is answered with the option that the person has chosen."""
    for response in _responses(tape, Asked.QUESTION):
        that(response in (OPTIONS[1], [OPTIONS[1]]), f'response: "{OPTIONS[1]}"', response)


@judges("ZF-CL-HITL-04", "continuation")
def goes_on(tape: Tape) -> None:
    """A long task that may go on is told so with confirm_continue."""
    evidence.answers_each(tape, answers(tape), Asked.CONTINUATION)


@judges("ZF-CL-HITL-05", "rollback")
def rolls_back(tape: Tape) -> None:
    """A state to go back to is chosen with rollback."""
    evidence.answers_each(tape, answers(tape), Asked.ROLLBACK)


@judges("ZF-CL-HITL-06", "confirmation_approved", "question")
def answers_once(tape: Tape) -> None:
    """A confirmation is answered once."""
    if not tape.asks:
        raise NotTestable("the client sent no message, so that nothing could be asked")
    posted = [it for it in tape.requests if it.method == "POST" and "/human-confirmation/" in it.path]
    that(len(posted) <= 1, "one answer", [str(request) for request in posted])


# -- waits, connections, errors, stops --------------------------------------------------------------------------------


@judges("ZF-CL-CONN-01", "plain")
def keeps_the_socket(tape: Tape) -> None:
    """The socket is used again for the next message."""
    sends = [frame for frame in requests_on_socket(tape) if frame.name == "chat.send"]
    if len(sends) < 2:
        raise NotTestable("the client sent no second message")
    used = [frame.connection for frame in sends]
    that(len(set(used)) == 1, "one connection for all messages", f"the connections {used}")


@judges("ZF-CL-CONN-02", "no_ticks")
def leaves_a_silent_socket(tape: Tape) -> None:
    """A socket without a tick for 60 s is closed, and another is opened."""
    if not requests_on_socket(tape):
        raise NotTestable("the client sent no message")
    that(len(sockets(tape)) >= 2, "a new connection after 60 s without a tick", f"{len(sockets(tape))} connection")


@judges("ZF-CL-CONN-03", "refused_sockets")
def backs_off(tape: Tape) -> None:
    """A connection that broke is made again, at growing intervals."""
    if not tape.cuts:
        raise NotTestable("the connection was not broken: the client did not get so far")
    sockets(tape)
    tries = [request.at for request in tape.after_cut if request.path == SOCKET]
    that(bool(tries), "the client to connect again by itself", "no further connection")
    evidence.is_calm(tries, MOST_SOCKETS)


@judges("ZF-CL-WAIT-01", "slow")
def waits_for_pieces(tape: Tape) -> None:
    """A pause within a run is waited out."""
    evidence.waited(messages(tape), "run")


@judges("ZF-CL-WAIT-02", "late")
def waits_for_the_beginning(tape: Tape) -> None:
    """An answer that begins late is waited for."""
    evidence.waited(messages(tape), "run")


@judges("ZF-CL-CUT-01", *CUTS)
def does_not_repeat(tape: Tape) -> None:
    """A message whose run has begun is not sent again when the connection breaks."""
    evidence.sent_once(tape, messages(tape))


@judges("ZF-CL-CUT-02", *CUTS)
def goes_on_after_a_cut(tape: Tape) -> None:
    """After a connection that broke, the conversation goes on."""
    evidence.kept_session(messages(tape))


@judges("ZF-CL-ERR-01", "refused_400")
def gives_up_on_errors(tape: Tape) -> None:
    """A chat that is refused as invalid is not sent again as it was."""
    evidence.not_tried_again(tape, messages(tape))


@judges("ZF-CL-ERR-02", "refused_500")
def tries_seldom(tape: Tape) -> None:
    """A server that fails is tried again a few times at most."""
    evidence.is_calm([message.at for message in messages(tape)])


@judges("ZF-CL-STOP-01", "stopped")
def stops(tape: Tape) -> None:
    """A run that the person stops is aborted by its session's id."""
    if not messages(tape):
        raise NotTestable("the client sent no message")
    runs = [run for run, _ in tape.meta.get("assigned", ())]
    aborted = [(it.body.get("params") or {}).get("session_id") for it in tape.frames if it.name == "chat.abort"]
    stopped = [request.path.split("/")[-2] for request in tape.of("POST", "/stop")]
    that(bool(set(runs).intersection((*aborted, *stopped))), f"chat.abort (or POST stop) of {runs[0]}",
         [*aborted, *stopped])  # fmt: skip


def _is_uuid(name: Any) -> bool:
    try:
        return isinstance(name, str) and UUID(name).version == 4
    except ValueError:
        return False
