"""CAS, the session and event API of Qoder Cloud Agents: REST and server-sent events."""

from gateway.ports import Dialect

from .bodies import OBJECTS
from .client import Decoder, Remote
from .client_requests import command_requests, resume_requests
from .server import CUES, MESSAGES, NAMES, StreamOptions, make_projector, recorded_commands, usual_stream_options
from .server.routes import RESOURCES, routes
from .wire import CasSettings


def examples(address: str, agent: str, key: str) -> list[str]:
    """Three lines that can be pasted, in this order."""
    cut = "cut -d'\"' -f4"
    new = f"""'{{"agent":"agent_{agent}","environment":{{"config":{{"type":"cloud"}}}}}}'"""
    said = """'{"events":[{"type":"user.message","content":"hello"}]}'"""
    return [
        f"S=$(curl -s{key} {address}/sessions -d {new} | {cut}); echo $S",
        f"curl -s{key} {address}/sessions/$S/events -d {said}",
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
    decoder=Decoder,
    remote=Remote,
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
    session_options=usual_stream_options,
)
