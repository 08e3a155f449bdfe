"""What clients of AAP send to resume a stream, or to send a command: for people who try it out."""

from shlex import quote

import orjson

import gateway.model as m
from gateway.ports import ClientPlace, ClientRequest


def resume_requests(place: ClientPlace) -> list[ClientRequest]:
    """The rest of the turn, after so many of its events."""
    if not place.begun_at:
        return []
    at = f"{place.address}/sessions/{place.session_id}/turns/current"
    resumed = f"curl -sN{place.key} {at} -H 'Last-Event-ID: {place.begun_at}.{place.frames}'"
    history = f"curl -s{place.key} '{place.address}/sessions/{place.session_id}/history?type=full'"
    return [
        ClientRequest(title="the rest of the turn", kind="curl", text=resumed),
        ClientRequest(title="what is known so far", kind="curl", text=history),
    ]


def command_requests(place: ClientPlace, command: m.AnyCommand) -> list[ClientRequest]:
    """A message, the result of a call, or an interrupt."""
    at = f"{place.address}/sessions/{place.session_id}/turns"
    if isinstance(command, m.Interrupt):
        return [ClientRequest(title="interrupt", kind="curl", text=f"curl -s{place.key} -X DELETE {at}/current")]
    if not isinstance(command, m.SendMessage) or not (text := m.text_of(command.content)):
        return []
    body = orjson.dumps({"stream": "delta", "messages": [{"role": "user", "content": text}]}).decode()
    return [ClientRequest(title="send a message", kind="curl", text=f"curl -sN{place.key} {at} -d {quote(body)}")]
