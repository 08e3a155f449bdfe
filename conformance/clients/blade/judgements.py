"""What Blade clients are judged by: events on the socket, requests, and connections."""

from typing import Any

from conformance.clients import evidence
from conformance.clients.agent_actions import Asked
from conformance.clients.blade.player import QUESTIONS
from conformance.clients.blade.scripted_server import SOCKET
from conformance.clients.client_traffic import ClientTraffic, Frame
from conformance.clients.evidence import Answer, Message
from conformance.clients.judgement import judges
from conformance.clients.shared_judgements import shared_judgements
from conformance.clients.situations import CUTS
from conformance.kit.expect import NotTestable, that

ASKS = ("question", "two_questions", "child_question")
MOST_SOCKETS = 8


def events(traffic: ClientTraffic, *names: str) -> list[Frame]:
    return [frame for frame in traffic.frames if frame.name in names]


def sends(traffic: ClientTraffic) -> list[tuple[Frame, dict[str, Any]]]:
    """What was sent with chat:send."""
    found = [(it, it.body if isinstance(it.body, dict) else {}) for it in events(traffic, "chat:send")]
    if not found:
        raise NotTestable("the client sent no chat:send")
    return found


def messages(traffic: ClientTraffic) -> list[Message]:
    """What people said; an answer to a question is no message."""
    said = [(it, body) for it, body in sends(traffic) if not body.get("askuser_answer")]
    return [
        Message(it.at, _text(body.get("message")), str(body.get("session_id")), it.turns_before) for it, body in said
    ]  # fmt: skip


def answers(traffic: ClientTraffic) -> list[Answer]:
    found = [body["askuser_answer"] for _, body in sends(traffic) if isinstance(body.get("askuser_answer"), dict)]
    return [Answer(0.0, str(it.get("tool_call_id")), Asked.QUESTION, it, place) for place, it in enumerate(found)]


def _text(message: Any) -> str:
    if isinstance(message, list):
        return "".join(str(part.get("text", "")) for part in message if isinstance(part, dict))
    return message if isinstance(message, str) else ""


# -- requests ---------------------------------------------------------------------------------------------------------


@judges("BL-CL-SEND-01")
def sends_what_is_needed(traffic: ClientTraffic) -> None:
    """chat:send has session_id, a string, and message, a string or a list of parts."""
    for frame, body in sends(traffic):
        that(isinstance(body.get("session_id"), str), "session_id: a string", frame.body)
        that(isinstance(body.get("message"), str | list), "message: a string or a list of parts", frame.body)


@judges("BL-CL-SESS-01")
def makes_a_session(traffic: ClientTraffic) -> None:
    """A session is made with an intent."""
    made = traffic.of("POST", "/api/sessions")
    if not made:
        raise NotTestable("the client made no session")
    for request in made:
        intent = request.body.get("intent") if isinstance(request.body, dict) else None
        that(isinstance(intent, str), "intent: a string", request)


@judges("BL-CL-AUTH-01")
def key_is_sent(traffic: ClientTraffic) -> None:
    """The key is the token of the connection, and the bearer token of requests."""
    key = evidence.needed_key(traffic)
    for frame in events(traffic, "connect"):
        token = frame.body.get("token") if isinstance(frame.body, dict) else None
        that(token == key, "auth: {token} with the key at the connection", token or "no token")
    ours = [it for it in traffic.requests if it.path.startswith("/api/") and it.path != "/api/version"]
    evidence.carries_key(traffic, ours)


# -- events -----------------------------------------------------------------------------------------------------------


@judges("BL-CL-EV-01", "echo")
def joins_deltas(traffic: ClientTraffic) -> None:
    """The text of a turn is the answer, whether it is joined from text_delta or read whole."""
    evidence.echoed_reply(traffic, messages(traffic))


@judges("BL-CL-EV-02", "child_words")
def keeps_children_apart(traffic: ClientTraffic) -> None:
    """What a sub-agent says is no part of the answer."""
    evidence.echoed_reply(traffic, messages(traffic))


# -- questions --------------------------------------------------------------------------------------------------------


@judges("BL-CL-ASK-01", *ASKS)
def names_the_question(traffic: ClientTraffic) -> None:
    """An answer names the tool call that asks; a question of a sub-agent is no exception."""
    evidence.answers_each(traffic, answers(traffic), Asked.QUESTION)


@judges("BL-CL-ASK-02", "question")
def chooses(traffic: ClientTraffic) -> None:
    """The chosen option is its index, under the number of the question."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.QUESTION):
        picks = answer.value.get("selections")
        that(picks == {"0": [1]}, 'selections: {"0": [1]} for the second option', answer.value)


@judges("BL-CL-ASK-03", "two_questions")
def answers_every_question(traffic: ClientTraffic) -> None:
    """Every question has a selection or a text of its own."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.QUESTION):
        for number in map(str, range(len(QUESTIONS))):
            has = any((answer.value.get(name) or {}).get(number) for name in ("selections", "custom"))
            that(has, f"selections or custom for question {number}", answer.value)


# -- waits, connections, errors, stops --------------------------------------------------------------------------------


@judges("BL-CL-WAIT-01", "slow")
def waits_for_pieces(traffic: ClientTraffic) -> None:
    """A pause within a chat is waited out."""
    evidence.waited(messages(traffic), "chat")


@judges("BL-CL-WAIT-02", "late")
def waits_for_the_beginning(traffic: ClientTraffic) -> None:
    """An answer that begins late is waited for."""
    evidence.waited(messages(traffic), "chat")


@judges("BL-CL-CUT-01", *CUTS)
def resumes(traffic: ClientTraffic) -> None:
    """After a break the client subscribes again, from the last event it had, or reads the messages."""
    if not traffic.cuts:
        raise NotTestable("the connection was not broken: the client did not get so far")
    right = int(traffic.cuts[0][1])
    later = [it for it in events(traffic, "session:subscribe") if it.at >= traffic.marks["cut"][0]]
    later = [it for it in later if isinstance(it.body, dict)]
    has_read = any(request.path.endswith("/messages") for request in traffic.after_cut)
    that(bool(later) or has_read, "session:subscribe, or GET messages", "neither after the connection broke")
    cursors = [it.body.get("after_sequence") for it in later if it.body.get("resume") is True]
    that(not cursors or cursors[0] == right, f"after_sequence: {right}, the last event that was sent", cursors[:1])


@judges("BL-CL-CUT-04", "refused_sockets")
def backs_off(traffic: ClientTraffic) -> None:
    """Connections that are refused are tried again a few times at most."""
    if not traffic.cuts:
        raise NotTestable("the connection was not broken: the client did not get so far")
    evidence.is_calm([it.at for it in traffic.after_cut if it.path.startswith(SOCKET)], MOST_SOCKETS)


@judges("BL-CL-STOP-01", "stopped")
def stops(traffic: ClientTraffic) -> None:
    """A chat that the person stops is stopped by its session's id."""
    session = messages(traffic)[0].session
    named = [it.body.get("session_id") for it in events(traffic, "chat:stop") if isinstance(it.body, dict)]
    that(session in named, f"chat:stop with session_id {session}", named)


# -- what every dialect demands ---------------------------------------------------------------------------------------

SHARED = shared_judgements(
    messages,
    waits_for_the_end="BL-CL-SEND-02",
    stays_in_the_session="BL-CL-SEND-03",
    takes_every_event="BL-CL-EV-03",
    takes_every_ending="BL-CL-EV-04",
    ignores_events="BL-CL-TOL-01",
    ignores_members="BL-CL-TOL-02",
    ignores_heartbeats="BL-CL-TOL-03",
    does_not_repeat="BL-CL-CUT-02",
    goes_on_after_a_cut="BL-CL-CUT-03",
    gives_up_on_refusals="BL-CL-ERR-01",
    tries_seldom="BL-CL-ERR-02",
)
