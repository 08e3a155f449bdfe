"""AAP, the Agent Application Protocol, version 3: REST and server-sent events."""

from shlex import quote

import orjson

import gateway.model as m
from gateway.client import NoPastResources
from gateway.ports import ClientPlace, ClientRequest, Dialect, ResourceGroup

from .bodies import OBJECTS
from .client import Decoder, PastSessions, Remote
from .server import CUES, MESSAGES, StreamOptions, make_projector, recorded_commands
from .server.routes import RESOURCES, routes
from .wire import AapSettings

EXAMPLE_TURN = '{"stream":"delta","messages":[{"role":"user","content":"hello"}]}'


def resume_requests(place: ClientPlace) -> list[ClientRequest]:
    """The requests for the rest of the turn, after the events that the client has had, and for the history."""
    if not place.begun_at:
        return []
    at = f"{place.address}/sessions/{place.session_id}/turns/current"
    resumed = f"curl -sN{place.key} {at} -H 'Last-Event-ID: {place.begun_at}.{place.frames}'"
    history = f"curl -s{place.key} '{place.address}/sessions/{place.session_id}/history?type=full'"
    return [
        ClientRequest(title="the rest of the turn", kind="curl", text=resumed),
        ClientRequest(title="what is known so far", kind="curl", text=history),
    ]


def command_requests(place: ClientPlace, command: m.AnyCommand) -> list[ClientRequest]:
    """The request that sends a message or an interrupt; none for other commands, and for a message without text."""
    at = f"{place.address}/sessions/{place.session_id}/turns"
    if isinstance(command, m.Interrupt):
        return [ClientRequest(title="interrupt", kind="curl", text=f"curl -s{place.key} -X DELETE {at}/current")]
    if not isinstance(command, m.SendMessage) or not (text := m.text_of(command.content)):
        return []
    body = orjson.dumps({"stream": "delta", "messages": [{"role": "user", "content": text}]}).decode()
    return [ClientRequest(title="send a message", kind="curl", text=f"curl -sN{place.key} {at} -d {quote(body)}")]


def examples(address: str, agent: str, key: str) -> list[str]:
    """Three lines that can be pasted, in this order."""
    made = f"""curl -s{key} {address}/sessions -d '{{"agent":{{"name":"{agent}"}}}}'"""
    return [
        f"curl -s {address}/meta; echo",
        f"S=$({made} | cut -d'\"' -f4); echo $S",
        f"curl -sN{key} {address}/sessions/$S/turns -d '{EXAMPLE_TURN}'",
    ]


NOTHING_SHOWN = "AAP shows nothing of a user but sessions"

DIALECT = Dialect(
    name="aap",
    mount="/aap",
    projector=make_projector,
    routes=routes,
    resources=RESOURCES,
    settings=AapSettings,
    examples=examples,
    framings=("sse",),
    replay_from="turn",
    cues=CUES,
    messages=MESSAGES,
    objects=OBJECTS,
    decoder=Decoder,
    remote=Remote,
    past_sessions=PastSessions,
    past_resources=lambda address, user: NoPastResources(dict.fromkeys(ResourceGroup, NOTHING_SHOWN)),
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
)
