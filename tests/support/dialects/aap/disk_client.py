"""AAP, spoken to a server that can store nothing for a while."""

from typing import Any

from tests.prove.crash.full_disk import WORDS, DialectConversation


class DiskClient(DialectConversation):
    """Says something in one session, and knows a refusal."""

    async def create(self) -> None:
        self.session = (await self.call("POST", "/aap/sessions", {"agent": {"name": "demo"}}))[1]["sessionId"]

    async def say(self, words: str) -> tuple[int, Any]:
        body = {"stream": "none", "messages": [{"role": "user", "content": words}]}
        return await self.call("POST", f"/aap/sessions/{self.session}/turns", body)

    reads = "/aap/sessions/{}/history?type=full"

    def is_refusal(self, told: Any) -> bool:
        return WORDS in told["error"]
