"""What clients of Blade send to resume a stream, or to send a command: for people who try it out."""

from shlex import quote

import orjson

import gateway.model as m
from gateway.ports import ClientPlace, ClientRequest


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
