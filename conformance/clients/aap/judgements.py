"""What AAP clients are judged by: their requests, and what these tell of how the client understood the server."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from conformance.clients import evidence
from conformance.clients.aap.scripted_server import MODES
from conformance.clients.agent_actions import Asked
from conformance.clients.client_traffic import ClientTraffic, Request
from conformance.clients.evidence import Answer, Message
from conformance.clients.judgement import judges
from conformance.clients.shared_judgements import shared_judgements
from conformance.clients.situation import SERVER_TOOL, TOOL
from conformance.clients.situations import CUTS, PATIENCE
from conformance.faults.aap.requests import NewSession, NewTurn
from conformance.faults.content import text_of
from conformance.kit.expect import NotTestable, equal, that

AGENT = "examiner"
KINDS = {"tool": Asked.CLIENT, "tool_permission": Asked.PERMISSION}


def bodies(traffic: ClientTraffic, *paths: str) -> list[Request]:
    found = traffic.of("POST", *paths)
    if not found:
        raise NotTestable(f"the client sent no POST {' or '.join(paths)}")
    return found


def posted(request: Request) -> list[dict[str, Any]]:
    """The messages in the body of a turn, as far as they are objects."""
    body = request.body if isinstance(request.body, dict) else {}
    found = body.get("messages")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def messages(traffic: ClientTraffic) -> list[Message]:
    """What people said, turn by turn."""
    users = ((it, [item for item in posted(it) if item.get("role") == "user"]) for it in _turns(traffic))
    return [Message(it.at, _text(found[0]), it.path, it.turns_before) for it, found in users if found]


def _turns(traffic: ClientTraffic) -> list[Request]:
    return traffic.of("POST", "/turns")


def answers(traffic: ClientTraffic) -> list[Answer]:
    return [
        Answer(request.at, str(item.get("toolCallId")), KINDS[item["role"]], item, place)
        for place, request in enumerate(_turns(traffic)) for item in posted(request) if item.get("role") in KINDS
    ]  # fmt: skip


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    is_text = isinstance(content, str) or (isinstance(content, list) and all(isinstance(it, dict) for it in content))
    return text_of(content) if is_text else ""


def _fits(request: Request, model: type[BaseModel], name: str) -> None:
    body = request.body
    try:
        model.model_validate({key: body[key] for key in body if key != "tools"} if isinstance(body, dict) else body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        that(False, f"the body to be a {name}; {place or 'it'}: {first['msg']}", request)


def _configs(traffic: ClientTraffic) -> Iterator[dict[str, Any]]:
    """What the client has said of the agent, in sessions and turns."""
    for request in traffic.of("POST", "/sessions", "/turns"):
        agent = request.body.get("agent") if isinstance(request.body, dict) else None
        if isinstance(agent, dict):
            yield agent


# -- requests ---------------------------------------------------------------------------------------------------------


@judges("AAP-CL-SESS-01")
def session_is_a_request(traffic: ClientTraffic) -> None:
    """The body of POST /sessions has an agent with its name; messages, if there are any, have their shapes."""
    for request in bodies(traffic, "/sessions"):
        _fits(request, NewSession, "PostSessionsRequest")


@judges("AAP-CL-SESS-02")
def agent_is_declared(traffic: ClientTraffic) -> None:
    """The session is made with an agent of /meta."""
    for request in bodies(traffic, "/sessions"):
        agent = request.body.get("agent") if isinstance(request.body, dict) else None
        equal("the agent's name, as /meta has it", AGENT, agent.get("name") if isinstance(agent, dict) else agent)


@judges("AAP-CL-SESS-03", "trusted_tool", "permission_allowed")
def tools_are_declared(traffic: ClientTraffic) -> None:
    """The tools that the client enables are tools of /meta, with a trust that is a boolean; options have strings."""
    found = [tool for agent in _configs(traffic) for tool in agent.get("tools") or () if isinstance(tool, dict)]
    if not found:
        raise NotTestable("the client enabled no tool of the server")
    for tool in found:
        equal("the name of a server tool, as /meta has it", SERVER_TOOL, tool.get("name"))
        that(isinstance(tool.get("trust", False), bool), "trust to be a boolean", tool)


@judges("AAP-CL-TURN-01")
def turn_is_a_request(traffic: ClientTraffic) -> None:
    """The body of POST /sessions/:id/turns has messages of an application, and a known stream mode if it has one."""
    for request in bodies(traffic, "/turns"):
        _fits(request, NewTurn, "PostSessionTurnRequest")


@judges("AAP-CL-TURN-02")
def turn_is_one_thing(traffic: ClientTraffic) -> None:
    """A turn has one message of a person, or answers."""
    for request in bodies(traffic, "/turns"):
        roles = [item.get("role") for item in posted(request)]
        that(roles == ["user"] or "user" not in roles, "one user message, or results and permissions", roles)


@judges("AAP-CL-TURN-03", "only_messages", "only_whole")
def mode_is_declared(traffic: ClientTraffic) -> None:
    """The client asks for a stream mode that the agent declares; without one it asks for none."""
    modes = traffic.meta["modes"]
    for request in bodies(traffic, "/turns"):
        mode = request.body.get("stream", "none") if isinstance(request.body, dict) else None
        that(mode not in MODES or mode in (*modes, "none"), f"one of the modes {modes}", request)


@judges("AAP-CL-TURN-04")
def agent_stays(traffic: ClientTraffic) -> None:
    """A turn does not name the agent: it cannot be changed."""
    for request in bodies(traffic, "/turns"):
        agent = request.body.get("agent") if isinstance(request.body, dict) else None
        that(not isinstance(agent, dict) or "name" not in agent, "no agent.name in a turn", request)


@judges("AAP-CL-AUTH-01")
def key_is_sent(traffic: ClientTraffic) -> None:
    """Every request but GET /meta carries the key as a bearer token."""
    evidence.carries_key(traffic, [request for request in traffic.requests if request.path != "/meta"])


# -- the stream -------------------------------------------------------------------------------------------------------


@judges("AAP-CL-SSE-01", "echo")
def joins_deltas(traffic: ClientTraffic) -> None:
    """The pieces of an answer are joined as they come."""
    evidence.echoed_reply(traffic, messages(traffic))


@judges("AAP-CL-SSE-02", "only_messages", "only_whole")
def takes_whole_messages(traffic: ClientTraffic) -> None:
    """A whole text is the answer, where the agent does not send deltas."""
    evidence.echoed_reply(traffic, messages(traffic))


# -- asks -------------------------------------------------------------------------------------------------------------


@judges("AAP-CL-TOOL-01", "client_tool")
def returns_results(traffic: ClientTraffic) -> None:
    """The client's tool returns: a tool message with the id of the call and content."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.CLIENT):
        content = answer.value.get("content")
        that(isinstance(content, str | list), "content, a string or a list of blocks", answer.value)


@judges("AAP-CL-TOOL-02", "permission_allowed")
def grants(traffic: ClientTraffic) -> None:
    """A tool that the person allows is granted."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.PERMISSION):
        that(answer.value.get("granted") is True, "granted: true", answer.value)


@judges("AAP-CL-TOOL-03", "permission_denied")
def denies(traffic: ClientTraffic) -> None:
    """A tool that the person denies is not granted; a reason is a string."""
    for answer in evidence.answers_each(traffic, answers(traffic), Asked.PERMISSION):
        that(answer.value.get("granted") is False, "granted: false", answer.value)


@judges("AAP-CL-TOOL-04", "several_asks")
def answers_all(traffic: ClientTraffic) -> None:
    """Of several calls each gets its answer, of its kind: a result for the client's tool, leave for the server's."""
    if len(traffic.asks) < 2:
        raise NotTestable("the client declared no tool, or enabled none of the server's: two could not be called")
    evidence.answers_each(traffic, answers(traffic), Asked.CLIENT, Asked.PERMISSION)


@judges("AAP-CL-TOOL-05", "several_asks")
def answers_together(traffic: ClientTraffic) -> None:
    """All calls that a turn left open are answered with one POST."""
    found = answers(traffic)
    if len(traffic.asks) < 2 or not found:
        raise NotTestable("there were no two calls that the client has answered")
    that(len({answer.source for answer in found}) == 1, "one POST with all answers", [item.value for item in found])


@judges("AAP-CL-TOOL-06", "trusted_tool", "several_asks")
def answers_what_was_asked(traffic: ClientTraffic) -> None:
    """A tool that the server runs by itself is not answered, and nothing else that was not asked."""
    if not traffic.asks:
        raise NotTestable("the client enabled no tool of the server, so that none could be called")
    evidence.answers_only(traffic, answers(traffic))


@judges("AAP-CL-TOOL-07", "client_tool", "several_asks")
def declares_tools(traffic: ClientTraffic) -> None:
    """The client's tools are declared with name, description and parameters."""
    requests = bodies(traffic, "/sessions", "/turns")
    found = [tool for it in requests if isinstance(it.body, dict) for tool in it.body.get("tools") or ()]
    if not found:
        raise NotTestable(f"the client declared no tool, and was told to declare {TOOL['name']}")
    for tool in found:
        shapes = {"name": str, "description": str, "parameters": dict}
        fitting = isinstance(tool, dict) and all(isinstance(tool.get(name), kind) for name, kind in shapes.items())
        that(fitting, "a tool with name, description and parameters", tool)


# -- waits, connections, errors, stops --------------------------------------------------------------------------------


def _patient(traffic: ClientTraffic) -> None:
    that(not traffic.count("hung_up"), f"the client to wait {PATIENCE:g} s", "it closed the connection")
    evidence.came_through(messages(traffic))


@judges("AAP-CL-WAIT-01", "slow")
def waits_for_pieces(traffic: ClientTraffic) -> None:
    """A pause within a stream is waited out."""
    _patient(traffic)


@judges("AAP-CL-WAIT-02", "late")
def waits_for_the_beginning(traffic: ClientTraffic) -> None:
    """An answer that begins late is waited for."""
    _patient(traffic)


@judges("AAP-CL-CUT-03", *CUTS, "dropped")
def makes_no_storm(traffic: ClientTraffic) -> None:
    """A connection that breaks brings no storm of requests."""
    evidence.is_calm([request.at for request in traffic.after_cut])


@judges("AAP-CL-STOP-01", "stopped")
def stops(traffic: ClientTraffic) -> None:
    """A turn that the person stops is no longer read: the client closes the stream, or asks the server to stop."""
    modes = [it.body.get("stream") for it in _turns(traffic) if isinstance(it.body, dict)]
    if not set(modes).intersection(("delta", "message")):
        raise NotTestable("the client streams no answers")
    asked = [request for request in traffic.requests if request.method == "DELETE"]
    that(bool(traffic.count("hung_up") or asked), "the stream closed, or a request to stop the turn", "neither")


# -- what every dialect demands ---------------------------------------------------------------------------------------

SHARED = shared_judgements(
    messages,
    waits_for_the_end="AAP-CL-TURN-05",
    stays_in_the_session="AAP-CL-TURN-06",
    takes_every_event="AAP-CL-SSE-03",
    takes_every_ending="AAP-CL-SSE-04",
    reads_the_format="AAP-CL-SSE-05",
    ignores_events="AAP-CL-TOL-01",
    ignores_members="AAP-CL-TOL-02",
    ignores_heartbeats="AAP-CL-TOL-03",
    does_not_repeat="AAP-CL-CUT-01",
    goes_on_after_a_cut="AAP-CL-CUT-02",
    gives_up_on_refusals="AAP-CL-ERR-01",
    waits_as_told="AAP-CL-ERR-02",
    tries_seldom="AAP-CL-ERR-03",
)
