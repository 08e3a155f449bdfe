"""Blade: chat:send and turn:patch over Socket.IO, and REST beside it."""

from gateway.ports import Dialect

from . import rest_views, views
from .hearing import BladeHearing
from .inbound import MESSAGES
from .outbound import CUES, NAMES, projector
from .overheard import overheard
from .remote import BladeRemote
from .routes import routes
from .wire import BladeSettings


def examples(address: str, agent: str, key: str) -> list[str]:
    """Two lines that can be pasted, in this order."""
    made = f"""curl -s{key} {address}/sessions -H 'Content-Type: application/json' -d '{{"intent":"hello"}}'"""
    asked = '{"message":"/think /tool clock hello"}'
    return [f"S=$({made} | cut -d'\"' -f4); echo $S", f"curl -s{key} {address}/sessions/$S/chat -d '{asked}'"]


DIALECT = Dialect(
    name="blade",
    mount="/api",
    outbound=projector,
    routes=routes,
    settings=BladeSettings,
    examples=examples,
    framings=("json",),
    needs="session",
    cues=CUES,
    names=NAMES,
    messages=MESSAGES,
    objects={**views.OBJECTS, **rest_views.OBJECTS},
    hearing=BladeHearing,
    remote=BladeRemote,
    overheard=overheard,
)
