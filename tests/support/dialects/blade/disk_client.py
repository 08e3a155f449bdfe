"""Blade, spoken to a server that can store nothing for a while."""

from typing import Any

import socketio

from tests.prove.crash.client_base import PATIENCE
from tests.prove.crash.full_disk import WORDS, DialectConversation


class DiskClient(DialectConversation):
    """Says something in one session, and knows a refusal."""

    async def create(self) -> None:
        self.session = (await self.call("POST", "/api/sessions", {"intent": "full"}))[1]["session_id"]

    async def say(self, words: str) -> tuple[int, Any]:
        sio = socketio.AsyncClient(reconnection=False, handle_sigint=False)
        await sio.connect(self.address, transports=["websocket"], wait_timeout=PATIENCE)
        try:
            ack = await sio.call("chat:send", {"session_id": self.session, "message": words}, timeout=PATIENCE)
        finally:
            await sio.disconnect()
            await sio.shutdown()
        return {None: 200, "timeout": 504}.get(ack.get("code"), 503), ack

    reads = "/api/sessions/{}/messages"

    def is_refusal(self, told: Any) -> bool:
        return told["status"] == "error" and WORDS in str(told)
