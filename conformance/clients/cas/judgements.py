"""What CAS clients are judged by: their requests, and what these tell of how the client understood the server."""

from typing import Any

from conformance.clients import evidence
from conformance.clients.agent_actions import Asked
from conformance.clients.client_traffic import ClientTraffic, Request
from conformance.clients.evidence import Answer, Message
from conformance.clients.judgement import judges
from conformance.clients.shared_judgements import shared_judgements
from conformance.clients.situations import CUTS, PATIENCE
from conformance.faults.content import text_of
from conformance.kit.expect import NotTestable, that

KINDS = {
    "user.tool_confirmation": ("tool_use_id", Asked.PERMISSION),
    "user.custom_tool_result": ("custom_tool_use_id", Asked.CLIENT),
}
NEEDED = {
    "user.message": ("content",),
    "user.interrupt": (),
    "user.tool_confirmation": ("tool_use_id", "result"),
    "user.custom_tool_result": ("custom_tool_use_id",),
    "user.define_outcome": (),
}
KEY_HEADERS = ("Idempotency-Key", "X-Idempotency-Key")


def posts(traffic: ClientTraffic) -> list[Request]:
    return traffic.of("POST", "/events")


def events(request: Request) -> list[dict[str, Any]]:
    """The events of a body, as far as they are objects."""
    body = request.body if isinstance(request.body, dict) else {}
    given = body.get("events", [body])
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def messages(traffic: ClientTraffic) -> list[Message]:
    found = ((it, [event for event in events(it) if event.get("type") == "user.message"]) for it in posts(traffic))
    return [Message(it.at, _text(said[0].get("content")), it.path, it.turns_before) for it, said in found if said]


def answers(traffic: ClientTraffic) -> list[Answer]:
    return [
        Answer(request.at, str(event.get(KINDS[event["type"]][0])), KINDS[event["type"]][1], event, place)
        for place, request in enumerate(posts(traffic)) for event in events(request) if event.get("type") in KINDS
    ]  # fmt: skip


def streams(traffic: ClientTraffic) -> list[Request]:
    """The streams that the client opened."""
    return [
        it for it in traffic.of("GET", "/events/stream", "/events")
        if it.path.endswith("/stream") or "text/event-stream" in it.headers.get("Accept", "")
    ]  # fmt: skip


def _text(content: Any) -> str:
    is_text = isinstance(content, str) or (isinstance(content, list) and all(isinstance(it, dict) for it in content))
    return text_of(content) if is_text else ""


def _sessions(traffic: ClientTraffic) -> list[dict[str, Any]]:
    found = [it.body for it in traffic.of("POST", "/sessions") if isinstance(it.body, dict)]
    if not found:
        raise NotTestable("the client made no session")
    return found


# -- requests ---------------------------------------------------------------------------------------------------------


@judges("CAS-CL-SESS-01")
def names_an_agent(traffic: ClientTraffic) -> None:
    """The agent of a new session is an id, or an object with an id, and a version that is a number if it has one."""
    for body in _sessions(traffic):
        agent = body.get("agent")
        about = agent if isinstance(agent, dict) else {"id": agent}
        that(isinstance(about.get("id"), str), "agent: an id, or an object with an id", agent)
        version = about.get("version", 0)
        that(isinstance(version, int) and not isinstance(version, bool), "agent.version: an integer", agent)


@judges("CAS-CL-SESS-02")
def names_an_environment(traffic: ClientTraffic) -> None:
    """The environment of a new session is an id, or an object with a config."""
    for body in _sessions(traffic):
        given = body.get("environment", body.get("environment_id", ""))
        is_inline = isinstance(given, dict) and isinstance(given.get("config"), dict)
        that(isinstance(given, str) or is_inline, "environment: an id, or an object with a config", given)


@judges("CAS-CL-SESS-03")
def writes_variables(traffic: ClientTraffic) -> None:
    """Environment variables of a new session, if there are any, are one string."""
    for body in _sessions(traffic):
        given = body.get("environment_variables", "")
        that(isinstance(given, str), "environment_variables: a string of KEY=VALUE", given)


@judges("CAS-CL-EV-01")
def sends_a_list(traffic: ClientTraffic) -> None:
    """Events are posted as a list that is not empty."""
    if not posts(traffic):
        raise NotTestable("the client posted no event")
    for request in posts(traffic):
        given = request.body.get("events") if isinstance(request.body, dict) else None
        that(isinstance(given, list) and bool(given), '{"events": [...]} with at least one event', request)


@judges("CAS-CL-EV-02")
def sends_known_events(traffic: ClientTraffic) -> None:
    """Every event has a type of the table, and the members that the table demands."""
    if not posts(traffic):
        raise NotTestable("the client posted no event")
    for event in (event for request in posts(traffic) for event in events(request)):
        kind = str(event.get("type"))
        that(kind in NEEDED, f"one of the types {', '.join(NEEDED)}", event)
        that(all(name in event for name in NEEDED[kind]), f"{kind} with {', '.join(NEEDED[kind])}", event)
        if kind == "user.message":
            that(isinstance(event["content"], str | list), "content: a string or a list of blocks", event)


@judges("CAS-CL-AUTH-01")
def key_is_sent(traffic: ClientTraffic) -> None:
    """Every request carries the key as a bearer token."""
    evidence.carries_key(traffic, traffic.requests)


# -- the stream -------------------------------------------------------------------------------------------------------


@judges("CAS-CL-SSE-01", "echo")
def reads_messages(traffic: ClientTraffic) -> None:
    """The text of agent.message is the answer, whether or not its pieces came before."""
    evidence.echoed_reply(traffic, messages(traffic))


# -- asks -------------------------------------------------------------------------------------------------------------


@judges("CAS-CL-TOOL-01", "client_tool")
def returns_results(traffic: ClientTraffic) -> None:
    """The client's tool returns: a user.custom_tool_result that names the call."""
    evidence.answers_each(traffic, answers(traffic), Asked.CLIENT)


@judges("CAS-CL-TOOL-02", "permission_allowed")
def allows(traffic: ClientTraffic) -> None:
    """A tool that the person allows is confirmed with allow."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.PERMISSION):
        that(answer.value.get("result") == "allow", "result: allow", answer.value)


@judges("CAS-CL-TOOL-03", "permission_denied")
def denies(traffic: ClientTraffic) -> None:
    """A tool that the person denies is confirmed with deny."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.PERMISSION):
        that(answer.value.get("result") == "deny", "result: deny", answer.value)


@judges("CAS-CL-TOOL-04", "several_asks")
def answers_all(traffic: ClientTraffic) -> None:
    """Of several calls each gets its answer, of its kind."""
    if len(traffic.asks) < 2:
        raise NotTestable("the client's agent has no custom tool, so that two tools could not be called")
    evidence.answers_each(traffic, answers(traffic), Asked.CLIENT, Asked.PERMISSION)


@judges("CAS-CL-TOOL-05", "trusted_tool", "several_asks")
def answers_what_was_asked(traffic: ClientTraffic) -> None:
    """A tool that needs no confirmation gets none, nor does anything else that was not asked."""
    if not traffic.asks:
        raise NotTestable("the client sent no message, so that no tool was called")
    evidence.answers_only(traffic, answers(traffic))


# -- waits, connections, errors, stops --------------------------------------------------------------------------------


@judges("CAS-CL-WAIT-01", "slow")
def waits_for_pieces(traffic: ClientTraffic) -> None:
    """A pause within a turn is waited out."""
    evidence.waited(messages(traffic), "turn")


@judges("CAS-CL-WAIT-02", "late")
def waits_for_the_beginning(traffic: ClientTraffic) -> None:
    """An answer that begins late is waited for."""
    evidence.waited(messages(traffic), "turn")


@judges("CAS-CL-WAIT-03", "late_acceptance")
def waits_for_the_acceptance(traffic: ClientTraffic) -> None:
    """A message that is accepted late is sent once, and its turn is read."""
    evidence.came_through(messages(traffic))
    first = [item for item in messages(traffic) if item.text == messages(traffic)[0].text]
    that(len(first) == 1, f"the message once, though it is accepted after {PATIENCE:g} s", f"{len(first)} times")


@judges("CAS-CL-CUT-01", *CUTS)
def resumes_at_the_cursor(traffic: ClientTraffic) -> None:
    """A stream that broke is read on after the last whole event."""
    if not traffic.cuts:
        raise NotTestable("no stream was open that could be cut: the client did not get so far, or reads no streams")
    right = traffic.cuts[0][1]
    later = [it for it in traffic.after_cut if it.method == "GET" and it.path.endswith(("/events", "/events/stream"))]
    that(bool(later), "the rest of the turn to be read: a new stream, or the list of events", "neither")
    cursors = [it.headers.get("Last-Event-ID") or it.query.get("after_id") for it in later]
    is_listed = later[0] not in streams(traffic) and cursors[0] is None
    that(is_listed or cursors[0] == right, f"Last-Event-ID (or after_id): {right}, the last whole event",
         cursors[0] or "no cursor")  # fmt: skip


@judges("CAS-CL-CUT-04", *CUTS, "refused_streams")
def makes_no_storm(traffic: ClientTraffic) -> None:
    """Streams that break or are refused bring no storm of new ones."""
    evidence.is_calm([request.at for request in streams(traffic)])


@judges("CAS-CL-IDEM-01", "dropped")
def repeats_under_its_key(traffic: ClientTraffic) -> None:
    """A message that is sent again, because no answer came, has the idempotency key of the first time."""
    tries = [it for it in posts(traffic) if any(event.get("type") == "user.message" for event in events(it))]
    if not traffic.count("cut"):
        raise NotTestable("the client sent no message")
    keys = [next((it.headers[name] for name in KEY_HEADERS if name in it.headers), None) for it in tries]
    that(len(tries) == 1 or (keys[0] is not None and len(set(keys)) == 1),
         "one try, or several with one Idempotency-Key", f"{len(tries)} tries with the keys {keys}")  # fmt: skip


@judges("CAS-CL-STOP-01", "stopped")
def stops(traffic: ClientTraffic) -> None:
    """A turn that the person stops is interrupted: user.interrupt, or the request that cancels."""
    if not messages(traffic):
        raise NotTestable("the client sent no message")
    kinds = [str(event.get("type")) for request in posts(traffic) for event in events(request)]
    that("user.interrupt" in kinds or bool(traffic.of("POST", "/cancel")), "user.interrupt", kinds)


# -- what every dialect demands ---------------------------------------------------------------------------------------

SHARED = shared_judgements(
    messages,
    waits_for_the_end="CAS-CL-EV-03",
    stays_in_the_session="CAS-CL-EV-04",
    reads_the_format="CAS-CL-SSE-02",
    takes_every_event="CAS-CL-SSE-03",
    takes_every_ending="CAS-CL-SSE-04",
    ignores_events="CAS-CL-TOL-01",
    ignores_members="CAS-CL-TOL-02",
    ignores_heartbeats="CAS-CL-TOL-03",
    does_not_repeat="CAS-CL-CUT-02",
    goes_on_after_a_cut="CAS-CL-CUT-03",
    gives_up_on_refusals="CAS-CL-ERR-01",
    waits_as_told="CAS-CL-ERR-02",
    tries_seldom="CAS-CL-ERR-03",
)
