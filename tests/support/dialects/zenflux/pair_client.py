"""A ZenFlux front end: it says one thing on a chat socket, and answers its modal windows over HTTP."""

from typing import Any

from tests.support.dialects.zenflux.client import Chat, Client
from tests.support.dialects.zenflux.pair_reader import PairReader
from tests.support.dialects.zenflux.reader import read_stream
from tests.support.gateway_server import Served
from tests.support.pairs.answer_texts import FILE, PAINTED, PICTURE

BROUGHT = {
    "images_in": [{"file_url": PICTURE, "file_name": "dot.png", "file_type": "image/png", "file_size": 8}],
    "files": [{"file_url": FILE["url"], "file_name": FILE["name"], "file_type": FILE["type"], "file_size": 5}],
}


class PairClient:
    """Conversations at one server, each on a socket of its own."""

    can_bring = ("images_in", "files")

    def __init__(self, served: Served) -> None:
        self.client = Client(served)

    async def converse(
        self, text: str, *, stop_at: int = 0, kindly: bool = True, brings: str = "",
    ) -> PairReader:
        reading, told = PairReader(), list[dict[str, Any]]()
        async with self.client.chat() as chat:
            run = (await chat.send(text, files=BROUGHT.get(brings, [])))["session_id"]
            while not reading.over:
                told += self._hear(chat, reading)
                if 0 < stop_at <= reading.deltas:
                    stop_at = 0
                    assert (await chat.ask("chat.abort", session_id=run))["ok"]
                waiting, reading.waiting = reading.waiting, []
                for kind, asked in waiting:
                    await self._answer(run, kind, asked, kindly)
                if not reading.over and not chat.events:
                    await chat.next()
        assert len(read_stream(told)) == 1, "one run, and everything in its place"
        return reading

    def _hear(self, chat: Chat, reading: PairReader) -> list[dict[str, Any]]:
        told = [*chat.events]
        for envelope in told:
            reading.hear(envelope)
        chat.events.clear()
        return told

    async def _answer(self, run: str, kind: str, asked: Any, kindly: bool) -> None:
        """Whoever will not have a long task go on stops it."""
        if kind == "continuation":
            await self.client.call("POST", f"/session/{run}/{'confirm_continue' if kindly else 'stop'}")
        elif kind == "rollback":
            await self.client.call("POST", f"/session/{run}/rollback", json={})
        else:
            body = {"response": _response(asked, kindly)}
            await self.client.call("POST", f"/human-confirmation/{asked['request_id']}", json=body)


def _response(asked: dict[str, Any], kindly: bool) -> Any:
    if asked.get("questions"):
        return {one["id"]: one["options"][0] for one in asked["questions"]}
    return ("approve" if kindly else "reject") if asked["options"] else PAINTED
