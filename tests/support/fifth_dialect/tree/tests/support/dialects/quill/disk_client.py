"""Quill, spoken to a server that can store nothing for a while."""

from typing import Any

from tests.prove.crash.full_disk import WORDS, DialectConversation


class DiskClient(DialectConversation):
    """Writes in one talk, and knows a refusal."""

    reads = "/quill/talks/{}"

    async def create(self) -> None:
        self.session = (await self.call("POST", "/quill/talks"))[1]["talk"]

    async def say(self, words: str) -> tuple[int, Any]:
        url = f"{self.address}/quill/talks/{self.session}/lines"
        async with self.http.post(url, json={"text": words}) as answer:
            return answer.status, None if answer.status == 200 else await answer.json()

    def is_refusal(self, told: Any) -> bool:
        return WORDS in told["error"]
