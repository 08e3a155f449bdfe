"""Quill, a protocol of five requests: a person and an agent write lines to each other, and nothing else is told."""

from gateway.ports import Dialect

from .client import Decoder, Remote
from .projector import make_projector
from .server import OBJECTS, recorded_commands, routes


def examples(address: str, agent: str, key: str) -> list[str]:
    """Two lines that can be pasted, in this order."""
    return [
        f"T=$(curl -s{key} -X POST {address}/talks | cut -d'\"' -f4); echo $T",
        f"""curl -sN{key} {address}/talks/$T/lines -d '{{"text":"hello"}}'""",
    ]


DIALECT = Dialect(
    name="quill",
    mount="/quill",
    projector=make_projector,
    routes=routes,
    examples=examples,
    framings=("sse",),
    replay_from="turn",
    messages={"line.written": ("content",), "lines.stopped": ()},
    objects=OBJECTS,
    decoder=Decoder,
    remote=Remote,
    recorded_commands=recorded_commands,
)
