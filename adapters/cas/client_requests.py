"""What clients of CAS send to resume a stream, or to send a command: for people who try it out."""

from shlex import quote

import orjson

import gateway.model as m
from gateway.ports import ClientPlace, ClientRequest


def resume_requests(place: ClientPlace) -> list[ClientRequest]:
    """The stream of the session, after the last event; without one, from its start."""
    at = f"{place.address}/sessions/{place.session_id}/events"
    after = f" -H 'Last-Event-ID: {place.cursor}'" if place.cursor is not None else ""
    listed = f"?after_id={place.cursor}" if place.cursor is not None else ""
    return [
        ClientRequest(title="the stream after this event", kind="curl",
                      text=f"curl -sN{place.key} {at}/stream{after}"),
        ClientRequest(title="the events after this one, as a list", kind="curl",
                      text=f"curl -s{place.key} '{at}{listed}'"),
    ]


def command_requests(place: ClientPlace, command: m.AnyCommand) -> list[ClientRequest]:
    """A message, a decision about a call, or an interrupt."""
    event: dict[str, object]
    if isinstance(command, m.Interrupt):
        event = {"type": "user.interrupt"}
    elif isinstance(command, m.SendMessage) and (text := m.text_of(command.content)):
        event = {"type": "user.message", "content": text}
    else:
        return []
    at, body = f"{place.address}/sessions/{place.session_id}/events", orjson.dumps({"events": [event]}).decode()
    return [ClientRequest(title=str(event["type"]), kind="curl", text=f"curl -s{place.key} {at} -d {quote(body)}")]
