"""CAS, the session and event API of Qoder Cloud Agents: REST and server-sent events."""

from functools import partial
from shlex import quote

import orjson

import gateway.model as m
from gateway.ports import ClientPlace, ClientRequest, Dialect

from .bodies import OBJECTS
from .client import Decoder, PastResources, PastSessions, Remote
from .server import CUES, MESSAGES, NAMES, StreamOptions, make_projector, recorded_commands, usual_stream_options
from .server.inbound import server_tools
from .server.routes import RESOURCES, routes
from .wire import CasSettings


def resume_requests(place: ClientPlace) -> list[ClientRequest]:
    """The stream of the session, after the last event; without one, from its start."""
    at = f"{place.address}/sessions/{place.session_id}/events"
    after = f" -H 'Last-Event-ID: {place.cursor}'" if place.cursor is not None else ""
    listed = f"?after_id={place.cursor}" if place.cursor is not None else ""
    return [
        ClientRequest(title="the stream after this event", kind="curl",
                      text=f"curl -sN{place.key} {at}/stream{after}"),
        ClientRequest(title="the events after this one, as a list", kind="curl",
                      text=f"curl -s{place.key} '{at}{listed}'"),
    ]


def command_requests(place: ClientPlace, command: m.AnyCommand) -> list[ClientRequest]:
    """A message, a decision about a call, or an interrupt."""
    event: dict[str, object]
    if isinstance(command, m.Interrupt):
        event = {"type": "user.interrupt"}
    elif isinstance(command, m.SendMessage) and (text := m.text_of(command.content)):
        event = {"type": "user.message", "content": text}
    else:
        return []
    at, body = f"{place.address}/sessions/{place.session_id}/events", orjson.dumps({"events": [event]}).decode()
    return [ClientRequest(title=str(event["type"]), kind="curl", text=f"curl -s{place.key} {at} -d {quote(body)}")]


def examples(address: str, agent: str, key: str) -> list[str]:
    """Three lines that can be pasted, in this order."""
    cut = "cut -d'\"' -f4"
    new = f"""'{{"agent":"agent_{agent}","environment":{{"config":{{"type":"cloud"}}}}}}'"""
    body = """'{"events":[{"type":"user.message","content":"hello"}]}'"""
    return [
        f"S=$(curl -s{key} {address}/sessions -d {new} | {cut}); echo $S",
        f"curl -s{key} {address}/sessions/$S/events -d {body}",
        f"curl -sN{key} {address}/sessions/$S/events/stream",
    ]


DIALECT = Dialect(
    name="cas",
    mount="/api/v1/cloud",
    projector=make_projector,
    routes=routes,
    resources=RESOURCES,
    settings=CasSettings,
    examples=examples,
    framings=("sse", "json"),
    replay_from="turn",
    cues=CUES,
    names=NAMES,
    messages=MESSAGES,
    objects=OBJECTS,
    name_types={"index": int, "agent_version": int, "outcome_id": str, "span_id": str, "raw.start.tool_use.name": str},
    decoder=Decoder,
    remote=Remote,
    past_sessions=partial(PastSessions, recorded=recorded_commands),
    past_resources=partial(PastResources, server_tools=server_tools),
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
    session_options=usual_stream_options,
)
