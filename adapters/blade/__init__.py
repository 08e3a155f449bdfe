"""Blade: chat:send and turn:patch over Socket.IO, and REST beside it."""

from functools import partial
from shlex import quote

import orjson

import gateway.model as m
from gateway.ports import ClientPlace, ClientRequest, Dialect

from .bodies import NAME_TYPES, OBJECTS
from .client import Decoder, PastResources, PastSessions, Remote
from .server import CUES, MESSAGES, NAMES, StreamOptions, make_projector, recorded_commands, socket_options
from .server.routes import RESOURCES, routes
from .wire import BladeSettings


def resume_requests(place: ClientPlace) -> list[ClientRequest]:
    """A subscription that goes on after the last number."""
    wanted: dict[str, object] = {"session_id": place.session_id}
    if place.cursor is not None:
        wanted |= {"resume": True, "after_sequence": place.cursor}
    return [_packet("subscribe on a new socket", "session:subscribe", wanted)]


def command_requests(place: ClientPlace, command: m.AnyCommand) -> list[ClientRequest]:
    """A message, or a stop."""
    if isinstance(command, m.Interrupt):
        return [_packet("stop the chat", "chat:stop", {"session_id": place.session_id})]
    if not isinstance(command, m.SendMessage) or not (text := m.text_of(command.content)):
        return []
    body = quote(orjson.dumps({"message": text}).decode())
    at = f"{place.address}/sessions/{place.session_id}/chat"
    return [
        _packet("send a message", "chat:send", {"session_id": place.session_id, "message": text}),
        ClientRequest(title="send a message over HTTP", kind="curl", text=f"curl -s{place.key} {at} -d {body}"),
    ]


def _packet(title: str, name: str, body: dict[str, object]) -> ClientRequest:
    return ClientRequest(title=title, kind="socketio", text=f"42{orjson.dumps([name, body]).decode()}")


def examples(address: str, agent: str, key: str) -> list[str]:
    """Two lines that can be pasted, in this order."""
    made = f"""curl -s{key} {address}/sessions -H 'Content-Type: application/json' -d '{{"intent":"hello"}}'"""
    asked = '{"message":"/think /tool clock hello"}'
    return [f"S=$({made} | cut -d'\"' -f4); echo $S", f"curl -s{key} {address}/sessions/$S/chat -d '{asked}'"]


DIALECT = Dialect(
    name="blade",
    mount="/api",
    projector=make_projector,
    routes=routes,
    resources=RESOURCES,
    settings=BladeSettings,
    examples=examples,
    framings=("socketio",),
    replay_from="session",
    cues=CUES,
    former_cues=dict.fromkeys(("chat.completed", "chat.failed", "chat.interrupted"), "chat.ended"),
    names=NAMES,
    messages=MESSAGES,
    objects=OBJECTS,
    name_types=NAME_TYPES,
    decoder=Decoder,
    remote=Remote,
    past_sessions=partial(PastSessions, recorded=recorded_commands),
    past_resources=PastResources,
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
    session_options=socket_options,
)
