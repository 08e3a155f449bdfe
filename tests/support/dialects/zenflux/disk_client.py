"""ZenFlux, spoken to a server that can store nothing for a while."""

from typing import Any

from tests.prove.crash.full_disk import WORDS, DialectConversation


class DiskClient(DialectConversation):
    """Says something in one session, and knows a refusal."""

    async def create(self) -> None:
        self.session = (await self.call("POST", "/api/v1/conversations?user_id=local"))[1]["data"]["id"]

    async def say(self, words: str) -> tuple[int, Any]:
        return await self.call("POST", "/api/v1/chat", {
            "message": words, "userId": "local", "conversationId": self.session, "stream": False})

    reads = "/api/v1/conversations/{}/messages"

    def is_refusal(self, told: Any) -> bool:
        return told["code"] == 503 and WORDS in told["message"]
