"""Blade: chat:send and turn:patch over Socket.IO, and REST beside it."""

from gateway.ports import Dialect

from .bodies import OBJECTS
from .client import Decoder, Remote
from .client_requests import command_requests, resume_requests
from .server import CUES, MESSAGES, NAMES, StreamOptions, make_projector, recorded_commands, socket_options
from .server.routes import RESOURCES, routes
from .wire import BladeSettings


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
    decoder=Decoder,
    remote=Remote,
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
    session_options=socket_options,
)
