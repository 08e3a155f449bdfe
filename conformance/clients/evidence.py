"""What judgements of all dialects have in common: messages that came, answers to asks, storms of requests."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.clients.agent_actions import Asked, Say
from conformance.clients.client_traffic import ClientTraffic, Request
from conformance.clients.judgement import DoesNotApply
from conformance.clients.situations import PATIENCE
from conformance.kit.expect import NotTestable, fail, show, that

MOST_TRIES = 8
"""So many requests in a watched time are no storm."""
EARLY = 0.2
"""A retry may come so many seconds too early: clocks differ."""


@dataclass(frozen=True)
class Message:
    """One message of a person, as the client sent it."""

    at: float
    text: str
    session: str
    turns_before: int = 0
    """How many turns had ended when it came."""


@dataclass(frozen=True)
class Answer:
    """What the client answered to an ask."""

    at: float
    ref: str
    kind: str
    value: Any
    source: int = 0
    """Which of the requests of the client it was in."""


def came_through(messages: Sequence[Message], count: int = 2) -> None:
    """The client was still there after what was played: it has sent all the messages that it was to send."""
    if not messages:
        raise NotTestable("the client sent no message")
    that(
        len(messages) >= count,
        f"{count} messages: the client takes the turn before as complete and goes on",
        f"{len(messages)}: {[message.text for message in messages]}",
    )


def sent_in_turn(messages: Sequence[Message]) -> None:
    """Each further message came after the end of the turn before it."""
    came_through(messages)
    for number, message in enumerate(messages[1:], 1):
        that(
            message.turns_before >= number,
            f"message {number + 1} after the turn of message {number} has ended",
            f"the message {message.text!r} while the turn was running",
        )


def sent_once(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """The first message was not sent again after the connection broke."""
    if not traffic.count("cut"):
        raise NotTestable("the connection was not broken: the client did not get so far")
    again = [item for item in messages[1:] if item.text == messages[0].text]
    that(not again, "the message once: its turn has begun", f"the message {messages[0].text!r} again")


def echoed(messages: Sequence[Message], text: str) -> None:
    """The second message is the answer to the first, word for word."""
    came_through(messages)
    that(messages[1].text.strip() == text.strip(), f"the answer {text!r} as the second message", messages[1].text)


def echoed_reply(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """The second message is the first reply that was played, word for word."""
    echoed(messages, "".join(action.text for action in traffic.meta["replies"][0] if isinstance(action, Say)))


def waited(messages: Sequence[Message], what: str) -> None:
    """The client has waited for the end of a slow turn before it went on."""
    came_through(messages)
    is_patient = messages[1].turns_before >= 1
    that(is_patient, f"the client to wait {PATIENCE:g} s", f"a further message before the {what} ended")


def carries_key(traffic: ClientTraffic, requests: Iterable[Request]) -> None:
    """Each of the requests carries the key of the examination as a bearer token."""
    key = needed_key(traffic)
    for request in requests:
        given = request.headers.get("Authorization")
        place = f"{request.method} {request.path}"
        that(given == f"Bearer {key}", f"Authorization: Bearer with the key at {place}", given or "no such header")


def needed_key(traffic: ClientTraffic) -> str:
    """The key that the client was given; what is said of keys does not apply without one."""
    key = traffic.meta["key"]
    if key is None:
        raise DoesNotApply("no key was given to the examination; --key gives one")
    return str(key)


def kept_session(messages: Sequence[Message]) -> None:
    """All messages went to one conversation."""
    came_through(messages)
    sessions = {message.session for message in messages}
    that(len(sessions) == 1, "all messages of a conversation in one session", sorted(sessions))


def is_calm(times: Sequence[float], most: int = MOST_TRIES) -> None:
    """There is no storm of requests."""
    seconds = times[-1] - times[0] if times else 0.0
    that(len(times) <= most, f"at most {most} tries", f"{len(times)} tries in {seconds:.1f} s")


def respects_wait(traffic: ClientTraffic, times: Sequence[float], seconds: float) -> None:
    """Nothing was tried again before the time that the server asked for."""
    if not traffic.count("refused"):
        raise NotTestable("the client sent no message")
    since = traffic.marks["refused"][0]
    early = [at - since for at in times if since < at < since + seconds - EARLY]
    that(not early, f"no further try for {seconds:g} s, as Retry-After says", f"tries after {show(early)} s")


def not_tried_again(traffic: ClientTraffic, messages: Sequence[Message]) -> None:
    """What was refused for good was not sent again as it was."""
    if not traffic.count("refused"):
        raise NotTestable("the client sent no message")
    that(len(messages) == 1, "one try: what is refused with 4xx stays refused", f"{len(messages)} tries")


def answers_each(traffic: ClientTraffic, answers: Iterable[Answer], *kinds: Asked) -> list[Answer]:
    """The one answer to each ask of these kinds, in the order of the asks."""
    asks = [ask for ask in traffic.asks if ask.kind in kinds]
    if not asks:
        raise NotTestable(NOT_ASKED[kinds[0]])
    given = list(answers)
    found = []
    for ask in asks:
        fitting = [item for item in given if item.ref == ask.ref]
        if len(fitting) != 1 or fitting[0].kind != ask.kind:
            fail(f"one answer to {ask.ref}, which is a {ask.kind} ask", [(item.kind, item.ref) for item in given])
        found += fitting
    return found


def answers_only(traffic: ClientTraffic, answers: Iterable[Answer]) -> None:
    """Nothing was answered that was not asked."""
    asked: Collection[str] = {ask.ref for ask in traffic.asks if ask.kind != Asked.NOTHING}
    strange = [item.ref for item in answers if item.ref not in asked]
    that(not strange, f"answers to what was asked only: {sorted(asked)}", f"answers to {strange}")


NOT_ASKED = {
    Asked.CLIENT: "the client declared no tool, so that none could be called",
    Asked.PERMISSION: "the client let the agent use no tool of the server that needs permission",
    Asked.QUESTION: "the client sent no message, so that nothing could be asked",
    Asked.CONTINUATION: "the client sent no message, so that nothing could be asked",
    Asked.ROLLBACK: "the client sent no message, so that nothing could be asked",
    Asked.NOTHING: "the client let the agent use no tool of the server without asking",
}
