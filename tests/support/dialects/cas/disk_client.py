"""CAS, spoken to a server that can store nothing for a while."""

from typing import Any

from tests.prove.crash.full_disk import WORDS, DialectConversation


class DiskClient(DialectConversation):
    """Says something in one session, and knows a refusal."""

    async def create(self) -> None:
        body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
        self.session = (await self.call("POST", "/api/v1/cloud/sessions", body))[1]["id"]

    async def say(self, words: str) -> tuple[int, Any]:
        body = {"events": [{"type": "user.message", "content": words}]}
        return await self.call("POST", f"/api/v1/cloud/sessions/{self.session}/events", body)

    reads = "/api/v1/cloud/sessions/{}/events"

    def is_refusal(self, told: Any) -> bool:
        return told["error"]["type"] == "overloaded_error" and WORDS in told["error"]["message"]
