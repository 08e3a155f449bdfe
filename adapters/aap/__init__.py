"""AAP, the Agent Application Protocol, version 3: REST and server-sent events."""

from gateway.ports import Dialect

from .bodies import OBJECTS
from .client import Decoder, Remote
from .client_requests import command_requests, resume_requests
from .server import CUES, MESSAGES, StreamOptions, make_projector, recorded_commands
from .server.routes import RESOURCES, routes
from .wire import AapSettings

EXAMPLE_TURN = '{"stream":"delta","messages":[{"role":"user","content":"hello"}]}'


def examples(address: str, agent: str, key: str) -> list[str]:
    """Three lines that can be pasted, in this order."""
    made = f"""curl -s{key} {address}/sessions -d '{{"agent":{{"name":"{agent}"}}}}'"""
    return [
        f"curl -s {address}/meta; echo",
        f"S=$({made} | cut -d'\"' -f4); echo $S",
        f"curl -sN{key} {address}/sessions/$S/turns -d '{EXAMPLE_TURN}'",
    ]


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
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
)
