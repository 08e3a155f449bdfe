"""ZenFlux chat: WebSocket frames, server-sent events and HTTP under one wrapper."""

from gateway.ports import Dialect

from .hearing import ZenfluxHearing
from .inbound import MESSAGES
from .manner import NAME
from .outbound import CUES, NAMES, projector
from .overheard import overheard
from .remote import ZenfluxRemote
from .routes import routes
from .views import OBJECTS
from .wire import ZenfluxSettings

CHAT = '{"message":"/think /tool clock hello","userId":"local"}'


def examples(address: str, agent: str, key: str) -> list[str]:
    """Two lines that can be pasted."""
    return [
        f"curl -sN{key} {address}/chat -d '{CHAT}'",
        f"curl -s{key} '{address}/conversations?user_id=local'; echo",
    ]


DIALECT = Dialect(
    name=NAME,
    mount="/api/v1",
    outbound=projector,
    routes=routes,
    settings=ZenfluxSettings,
    examples=examples,
    framings=("json", "sse"),
    needs="turn",
    cues=CUES,
    names=NAMES,
    messages=MESSAGES,
    objects=OBJECTS,
    hearing=ZenfluxHearing,
    remote=ZenfluxRemote,
    overheard=overheard,
)
