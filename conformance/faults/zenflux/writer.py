"""The writer of the ZenFlux reference server: events become frames of a socket, or chunks of a stream."""

import asyncio
from time import time
from uuid import uuid4

import orjson

from conformance.faults.zenflux.player import RunEvent, RunEvents
from conformance.faults.zenflux.state import Body, Session, event_time

THROTTLE = 0.15
DONE = {"type": "done", "data": {"type": "done"}}


class Writer:
    """Writes events: in envelopes, as frames of a socket or as chunks of a stream."""

    def envelope(self, session: Session, event: RunEvent) -> Body:
        session.seq += 1
        about = {"event_uuid": str(uuid4()), "seq": session.seq, "type": event.type, "session_id": session.id}
        about |= {"conversation_id": session.conversation.id, "message_id": session.message_id}
        about |= {"timestamp": event_time(), "data": event.data}
        return about | ({"message": event.message} if event.message is not None else {})

    def event_frame(self, envelope: Body) -> Body:
        return {"type": "event", "event": envelope["type"], "payload": envelope, "seq": envelope["seq"]}

    def response_frame(self, name: str, payload: Body) -> Body:
        return {"type": "res", "id": name, "ok": True, "payload": payload}

    def error_frame(self, name: str, code: str, words: str) -> Body:
        return {"type": "res", "id": name, "ok": False, "error": {"code": code, "message": words}}

    def tick_frame(self) -> Body:
        return {"type": "event", "event": "tick", "payload": {"ts": int(time() * 1000)}, "seq": 0}

    def pong(self) -> Body:
        return {"type": "pong", "ts": int(time() * 1000)}

    async def throttled(self, events: RunEvents) -> RunEvents:
        """Merge deltas that follow each other within 150 ms; any other event sends the merged delta first."""
        last, held, index = 0.0, "", 0
        async for event in events:
            if event.type != "content_delta":
                if held:
                    yield RunEvent("content_delta", {"index": index, "delta": held})
                held = ""
                yield event
                continue
            index, held = event.data["index"], held + event.data["delta"]
            if asyncio.get_running_loop().time() - last >= THROTTLE:
                yield RunEvent("content_delta", {"index": index, "delta": held})
                last, held = asyncio.get_running_loop().time(), ""

    def stream_type(self) -> str:
        return "text/event-stream"

    def chunk(self, envelope: Body) -> bytes:
        return b"data: %s\n\n" % orjson.dumps(envelope)

    def last_chunk(self) -> bytes:
        return b"event: done\ndata: %s\n\n" % orjson.dumps(DONE)
