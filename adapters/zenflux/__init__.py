"""ZenFlux chat: WebSocket frames, server-sent events and HTTP under one wrapper."""

from collections.abc import Mapping
from functools import partial
from shlex import quote

import orjson

import gateway.model as m
from gateway.ports import ClientPlace, ClientRequest, Dialect

from .bodies import OBJECTS
from .client import Decoder, PastResources, PastSessions, Remote
from .server import CUES, MESSAGES, NAME_TYPES, NAMES, StreamOptions, make_projector, recorded_commands, socket_options
from .server.agents import enabled_tools
from .server.routes import RESOURCES, routes
from .wire import DIALECT_NAME, LOCAL_USER, ZenfluxSettings

EXAMPLE_CHAT = '{"message":"/think /tool clock hello","userId":"local"}'


def resume_requests(place: ClientPlace) -> list[ClientRequest]:
    """The rest of the run, after the last number."""
    if place.turn_id is None:
        return []
    params = {"session_id": place.turn_id, "after_seq": place.cursor or 0}
    return [_frame("the rest of the run, on a new chat socket", "session.resume", params)]


def command_requests(place: ClientPlace, command: m.AnyCommand) -> list[ClientRequest]:
    """A message, or an abort."""
    if isinstance(command, m.Interrupt) and place.turn_id is not None:
        return [_frame("abort the run", "chat.abort", {"session_id": place.turn_id})]
    if not isinstance(command, m.SendMessage) or not (text := m.text_of(command.content)):
        return []
    message = {"message": text, "user_id": LOCAL_USER, "conversation_id": place.session_id}
    body = quote(orjson.dumps(message).decode())
    return [
        _frame("send a message", "chat.send", message),
        ClientRequest(title="send a message over HTTP", kind="curl",
                      text=f"curl -sN{place.key} {place.address}/chat -d {body}"),
    ]


def _frame(title: str, method: str, params: Mapping[str, object]) -> ClientRequest:
    text = orjson.dumps({"type": "req", "id": "1", "method": method, "params": params}).decode()
    return ClientRequest(title=title, kind="websocket", text=text)


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
    name_types=NAME_TYPES,
    decoder=Decoder,
    remote=Remote,
    past_sessions=PastSessions,
    past_resources=partial(PastResources, enabled_tools=enabled_tools),
    recorded_commands=recorded_commands,
    default_options=StreamOptions(),
    resume_requests=resume_requests,
    command_requests=command_requests,
    session_options=socket_options,
)
