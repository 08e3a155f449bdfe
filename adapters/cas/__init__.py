"""CAS, the session and event API of Qoder Cloud Agents: REST and server-sent events."""

from gateway.ports import Dialect

from .client import Decoder, Remote
from .server import CUES, NAMES, StreamOptions, make_projector, recorded_commands, resource_views, views
from .server.routes import routes
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
    settings=CasSettings,
    examples=examples,
    framings=("sse", "json"),
    replay_from="turn",
    cues=CUES,
    names=NAMES,
    messages={
        "user.message": ("content",),
        "user.interrupt": (),
        "user.tool_confirmation": ("request_id", "granted", "reason"),
        "user.custom_tool_result": ("request_id", "content", "is_error"),
        "user.define_outcome": ("fields",),
        "system.message": ("fields",),
        "answer.question": ("request_id", "custom", "said"),
        "answer.continuation": ("request_id", "proceed"),
        "answer.rollback": ("request_id", "option"),
    },
    objects={**views.OBJECTS, **resource_views.RESOURCE_OBJECTS},
    decoder=Decoder,
    remote=Remote,
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
)
