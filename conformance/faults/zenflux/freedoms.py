"""More servers that the specification allows: other bytes for the same events, and other words for the same things.

`OtherBytes` writes its streams as the event-stream format allows: a byte order mark, CRLF line ends, comments in wide
characters, retry hints, data over several lines, no space after the colon; its members come in another order and its
deltas letter by letter. `OtherWords` refuses with 422, says times without fractions and ids in capitals, keeps plain
replies as plain text, names its lists differently, offers objects to roll back to and no reason, gives a conversation
its title when the message is over, and ends it with conversation_stop.
"""

from collections.abc import Iterator
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.zenflux.editing import Editing, changed, without
from conformance.faults.zenflux.memory import Body, Conversation, Session
from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer

FINAL = {"completed": "completed", "cancelled": "stopped", "failed": "failed"}


class OtherBytes(ZenfluxServer):
    """Streams, frames and bodies are spelled as nobody else would spell them."""

    def chunk(self, envelope: Body) -> bytes:
        spread = orjson.dumps(_turned(envelope), option=orjson.OPT_INDENT_2).replace(b"\n", b"\ndata:")
        mark = b"\xef\xbb\xbf" if envelope["seq"] == 1 else b""
        plain = b"retry: 100\ndata:" + spread + b"\nid: %d\n\n" % envelope["seq"]
        return mark + (": 还在 😀\n\n".encode() + plain).replace(b"\n", b"\r\n")

    def last_chunk(self) -> bytes:
        return super().last_chunk().replace(b"event: ", b"event:").replace(b"\n", b"\r\n")

    async def forwarded(self, session: Session) -> Telling:
        async for told in super().forwarded(session):
            pieces = list(told.data["delta"]) if told.type == "content_delta" else []
            for piece in pieces:
                yield changed(told, delta=piece)
            if not pieces:
                yield told

    def event_frame(self, envelope: Body) -> Body:
        return _turned(super().event_frame(_turned(envelope)))

    def response_frame(self, name: str, payload: Body) -> Body:
        return _turned(super().response_frame(name, payload))

    def wrap(self, code: int, message: str, data: Any) -> web.Response:
        body = orjson.dumps({"data": data, "message": message, "code": code}, option=orjson.OPT_INDENT_2)
        return web.Response(body=body, status=code, headers={"Content-Type": "application/json; charset=utf-8"})


def _turned(body: Body) -> Body:
    """The same members in the opposite order."""
    return dict(reversed(body.items()))


class OtherWords(Editing):
    """What is left open is answered otherwise."""

    def refusal(self, status: int, words: str) -> web.Response:
        return super().refusal(422 if status == 400 else status, words)

    def envelope(self, session: Session, told: Told) -> Body:
        envelope = super().envelope(session, told)
        return envelope | {"event_uuid": envelope["event_uuid"].upper(), "timestamp": f"{envelope['timestamp'][:19]}Z"}

    def edited(self, told: Told) -> Iterator[Told]:
        if told.type == "rollback_options":
            told = without(changed(told, options=[{"id": "all"}, {"id": "last"}]), "error", "reason")
        yield told

    async def play(self, session: Session) -> Telling:
        """The title comes after the message, and conversation_stop before session_end."""
        talk = session.conversation
        async for told in super().play(session):
            if told.type == "session_end" and told.data["status"] == "completed":
                yield self.change(session, {"title": talk.title})
            if told.type == "session_end":
                final = FINAL[told.data["status"]]
                yield Told("conversation_stop", {"conversation_id": talk.id, "final_status": final})
            yield told

    def page(self, talk: Conversation, limit: int, request: web.Request) -> Body:
        page = super().page(talk, limit, request)
        return page | {"messages": [{**message, "content": _plain(message["content"])} for message in page["messages"]]}

    async def get_pending(self, request: web.Request) -> web.StreamResponse:
        return self.reply({"requests": self.pending()})


def _plain(content: Any) -> Any:
    """Text blocks alone as one text."""
    if isinstance(content, str) or any(block["type"] != "text" for block in content):
        return content
    return "".join(block["text"] for block in content)
