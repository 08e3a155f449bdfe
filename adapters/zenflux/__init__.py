"""ZenFlux chat: WebSocket frames, server-sent events and HTTP under one wrapper."""

from gateway.ports import Dialect

from .bodies import OBJECTS
from .client import Decoder, Remote
from .client_requests import command_requests, resume_requests
from .server import CUES, MESSAGES, NAMES, StreamOptions, make_projector, recorded_commands, socket_options
from .server.routes import RESOURCES, routes
from .wire import DIALECT_NAME, ZenfluxSettings

EXAMPLE_CHAT = '{"message":"/think /tool clock hello","userId":"local"}'


def examples(address: str, agent: str, key: str) -> list[str]:
    """Two lines that can be pasted."""
    return [
        f"curl -sN{key} {address}/chat -d '{EXAMPLE_CHAT}'",
        f"curl -s{key} '{address}/conversations?user_id=local'; echo",
    ]


DIALECT = Dialect(
    name=DIALECT_NAME,
    mount="/api/v1",
    projector=make_projector,
    routes=routes,
    resources=RESOURCES,
    settings=ZenfluxSettings,
    examples=examples,
    framings=("json", "sse"),
    replay_from="turn",
    cues=CUES,
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
