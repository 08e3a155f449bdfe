"""What ZenFlux clients are judged by: frames on the socket, requests, and connections."""

from typing import Any
from uuid import UUID

from conformance.clients import evidence
from conformance.clients.agent_actions import Asked
from conformance.clients.client_traffic import ClientTraffic, Frame, Request
from conformance.clients.evidence import Answer, Message
from conformance.clients.judgement import DoesNotApply, judges
from conformance.clients.shared_judgements import shared_judgements
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


def requests_on_socket(traffic: ClientTraffic) -> list[Frame]:
    """The frames other than pings."""
    found = [frame for frame in traffic.frames if frame.body.get("type") != "ping"]
    if not found and traffic.of("POST", "/chat"):
        raise DoesNotApply("the client chats over HTTP and not over the socket")
    if not found:
        raise NotTestable("the client sent no frame")
    return found


def sockets(traffic: ClientTraffic) -> list[Request]:
    found = traffic.of("GET", SOCKET)
    if not found and traffic.of("POST", "/chat"):
        raise DoesNotApply("the client chats over HTTP and not over the socket")
    return found


def chats(traffic: ClientTraffic) -> list[tuple[Frame | Request, dict[str, Any]]]:
    """What was sent to begin a run, over the socket or over HTTP, with its parameters in one spelling."""
    frames = [(it, it.body.get("params")) for it in traffic.frames if it.name == "chat.send"]
    found: list[tuple[Frame | Request, dict[str, Any]]] = []
    found += [(it, params if isinstance(params, dict) else {}) for it, params in frames]
    found += [(it, _spelled(it.body)) for it in traffic.of("POST", "/chat")]
    return found


def messages(traffic: ClientTraffic) -> list[Message]:
    assigned = [talk for _, talk in traffic.meta.get("assigned", ())]
    return [
        Message(it.at, str(params.get("message")), assigned[place] if place < len(assigned) else "", it.turns_before)
        for place, (it, params) in enumerate(chats(traffic))
    ]  # fmt: skip


def answers(traffic: ClientTraffic) -> list[Answer]:
    """What the client answered; a confirmation may name its request or its session."""
    found = []
    for place, request in enumerate(it for it in traffic.requests if it.method == "POST"):
        steps = request.path.strip("/").split("/")
        for ask in traffic.asks:
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


def _responses(traffic: ClientTraffic, kind: Asked) -> list[Any]:
    found = evidence.answers_each(traffic, answers(traffic), kind)
    return [it.value.body.get("response") if isinstance(it.value.body, dict) else None for it in found]


# -- frames and requests ----------------------------------------------------------------------------------------------


@judges("ZF-CL-FRAME-01")
def frames_are_requests(traffic: ClientTraffic) -> None:
    """Every frame is a request with type, id, method and params; or a ping."""
    for frame in requests_on_socket(traffic):
        fits = frame.body.get("type") == "req" and isinstance(frame.body.get("params"), dict)
        that(fits and isinstance(frame.body.get("method"), str), '{"type": "req", id, method, params}', frame.body)


@judges("ZF-CL-FRAME-02")
def ids_are_uuids(traffic: ClientTraffic) -> None:
    """Every request has an id of its own, a UUID of version 4."""
    names = [frame.body.get("id") for frame in requests_on_socket(traffic)]
    for name in names:
        that(_is_uuid(name), "id: a UUID of version 4", name)
    that(len(set(names)) == len(names), "another id for every request", names)


@judges("ZF-CL-FRAME-03")
def methods_are_known(traffic: ClientTraffic) -> None:
    """The method of a request is chat.send or chat.abort."""
    for frame in requests_on_socket(traffic):
        that(frame.body.get("method") in METHODS, f"one of the methods {', '.join(METHODS)}", frame.body)


@judges("ZF-CL-SEND-01")
def sends_what_is_needed(traffic: ClientTraffic) -> None:
    """A chat has message and user_id, and other parameters of their types."""
    if not chats(traffic):
        raise NotTestable("the client sent no message")
    for _, params in chats(traffic):
        for name in ("message", "user_id"):
            that(isinstance(params.get(name), str), f"{name}: a string", params)
        for name, kind in TYPES.items():
            that(params.get(name) is None or isinstance(params[name], kind), f"{name}: a {kind.__name__}", params)


# -- events -----------------------------------------------------------------------------------------------------------


@judges("ZF-CL-EV-01", "echo")
def joins_deltas(traffic: ClientTraffic) -> None:
    """The deltas of a block are joined as they come."""
    evidence.echoed_reply(traffic, messages(traffic))


# -- confirmations ----------------------------------------------------------------------------------------------------


@judges("ZF-CL-HITL-01", "confirmation_approved")
def approves(traffic: ClientTraffic) -> None:
    """What the person approves is answered with approve."""
    for response in _responses(traffic, Asked.PERMISSION):
        that(response == "approve", 'response: "approve"', response)


@judges("ZF-CL-HITL-02", "confirmation_rejected")
def rejects(traffic: ClientTraffic) -> None:
    """What the person rejects is answered with reject."""
    for response in _responses(traffic, Asked.PERMISSION):
        that(response == "reject", 'response: "reject"', response)


@judges("ZF-CL-HITL-03", "question")
def chooses(traffic: ClientTraffic) -> None:
    """A question is answered with the option that the person has chosen."""
    for response in _responses(traffic, Asked.QUESTION):
        that(response in (OPTIONS[1], [OPTIONS[1]]), f'response: "{OPTIONS[1]}"', response)


@judges("ZF-CL-HITL-04", "continuation")
def goes_on(traffic: ClientTraffic) -> None:
    """A long task that may go on is told so with confirm_continue."""
    evidence.answers_each(traffic, answers(traffic), Asked.CONTINUATION)


@judges("ZF-CL-HITL-05", "rollback")
def rolls_back(traffic: ClientTraffic) -> None:
    """A state to go back to is chosen with rollback."""
    evidence.answers_each(traffic, answers(traffic), Asked.ROLLBACK)


@judges("ZF-CL-HITL-06", "confirmation_approved", "question")
def answers_once(traffic: ClientTraffic) -> None:
    """A confirmation is answered once."""
    if not traffic.asks:
        raise NotTestable("the client sent no message, so that nothing could be asked")
    posted = [it for it in traffic.requests if it.method == "POST" and "/human-confirmation/" in it.path]
    that(len(posted) <= 1, "one answer", [str(request) for request in posted])


# -- waits, connections, errors, stops --------------------------------------------------------------------------------


@judges("ZF-CL-CONN-01", "plain")
def keeps_the_socket(traffic: ClientTraffic) -> None:
    """The socket is used again for the next message."""
    sends = [frame for frame in requests_on_socket(traffic) if frame.name == "chat.send"]
    if len(sends) < 2:
        raise NotTestable("the client sent no second message")
    used = [frame.connection for frame in sends]
    that(len(set(used)) == 1, "one connection for all messages", f"the connections {used}")


@judges("ZF-CL-CONN-02", "no_ticks")
def leaves_a_silent_socket(traffic: ClientTraffic) -> None:
    """A socket without a tick for 60 s is closed, and another is opened."""
    if not requests_on_socket(traffic):
        raise NotTestable("the client sent no message")
    count = len(sockets(traffic))
    that(count >= 2, "a new connection after 60 s without a tick", f"{count} connection")


@judges("ZF-CL-CONN-03", "refused_sockets")
def backs_off(traffic: ClientTraffic) -> None:
    """A connection that broke is made again, at growing intervals."""
    if not traffic.cuts:
        raise NotTestable("the connection was not broken: the client did not get so far")
    sockets(traffic)
    tries = [request.at for request in traffic.after_cut if request.path == SOCKET]
    that(bool(tries), "the client to connect again by itself", "no further connection")
    evidence.is_calm(tries, MOST_SOCKETS)


@judges("ZF-CL-WAIT-01", "slow")
def waits_for_pieces(traffic: ClientTraffic) -> None:
    """A pause within a run is waited out."""
    evidence.waited(messages(traffic), "run")


@judges("ZF-CL-WAIT-02", "late")
def waits_for_the_beginning(traffic: ClientTraffic) -> None:
    """An answer that begins late is waited for."""
    evidence.waited(messages(traffic), "run")


@judges("ZF-CL-STOP-01", "stopped")
def stops(traffic: ClientTraffic) -> None:
    """A run that the person stops is aborted by its session's id."""
    if not messages(traffic):
        raise NotTestable("the client sent no message")
    runs = [run for run, _ in traffic.meta.get("assigned", ())]
    aborted = [(it.body.get("params") or {}).get("session_id") for it in traffic.frames if it.name == "chat.abort"]
    stopped = [request.path.split("/")[-2] for request in traffic.of("POST", "/stop")]
    that(bool(set(runs).intersection((*aborted, *stopped))), f"chat.abort (or POST stop) of {runs[0]}",
         [*aborted, *stopped])  # fmt: skip


def _is_uuid(name: Any) -> bool:
    try:
        return isinstance(name, str) and UUID(name).version == 4
    except ValueError:
        return False


# -- what every dialect demands ---------------------------------------------------------------------------------------

SHARED = shared_judgements(
    messages,
    stays_in_the_session="ZF-CL-SEND-02",
    waits_for_the_end="ZF-CL-SEND-03",
    takes_every_event="ZF-CL-EV-02",
    takes_every_ending="ZF-CL-EV-03",
    ignores_events="ZF-CL-TOL-01",
    ignores_members="ZF-CL-TOL-02",
    ignores_heartbeats="ZF-CL-TOL-03",
    does_not_repeat="ZF-CL-CUT-01",
    goes_on_after_a_cut="ZF-CL-CUT-02",
    gives_up_on_refusals="ZF-CL-ERR-01",
    tries_seldom="ZF-CL-ERR-02",
)
