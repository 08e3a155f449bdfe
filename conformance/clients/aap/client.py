"""A small correct AAP client, which can be wrong in one way at a time: `python -m conformance.clients.aap.client`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson

from conformance.clients.client_base import ClientBase, Gone, run_client
from conformance.clients.situation import SERVER_TOOL, Cue
from conformance.faults.content import text_of
from conformance.kit.sse import SseParser

Event = tuple[str, dict[str, Any]]
KNOWN = ("turn_start", "text_delta", "thinking_delta", "text", "thinking", "tool_call", "tool_result", "turn_stop")


class AapClient:
    """One conversation."""

    def __init__(self, cue: Cue, wrong: str | None, http: aiohttp.ClientSession) -> None:
        self._actor, self._http = ClientBase(cue, wrong), http
        self._wrong, self._told = self._actor.is_wrong, cue.instruction
        self._mode, self._session, self._calls = "none", "", dict[str, dict[str, Any]]()

    async def run(self) -> None:
        meta = await self._json("GET", "/meta")
        agent = meta["agents"][0]
        modes = agent.get("capabilities", {}).get("stream", {})
        known = ("delta",) if self._wrong("always_streams") else ("delta", "message")
        self._mode = next((mode for mode in known if mode in modes or self._wrong("always_streams")), "none")
        await self._open(agent["name"])
        await self._actor.send_all(self._send)

    async def _open(self, agent: str) -> None:
        made = await self._json("POST", "/sessions", self._new_session(agent))
        self._session = made["sessionId"]

    def _new_session(self, agent: str) -> dict[str, Any]:
        about: dict[str, Any] = {"name": "somebody" if self._wrong("invents_agent") else agent}
        if self._told.server_tool:
            name = "unheard_of" if self._wrong("invents_tool") else SERVER_TOOL
            about["tools"] = [{"name": name, "trust": self._told.is_trusted}]
            if self._wrong("invents_tool"):
                about["tools"].append({"name": SERVER_TOOL, "trust": self._told.is_trusted})
        body: dict[str, Any] = {"agent": about}
        if self._wrong("plain_agent"):
            body["agent"] = agent
        if self._told.tool:
            body["tools"] = [dict(self._told.tool)]
            if self._wrong("bare_tools"):
                del body["tools"][0]["description"]
        return body

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        if self._wrong("new_sessions"):
            await self._open("examiner")
        message = {"role": "user", "content": text}
        body = [message, message] if self._wrong("two_messages") else [message]
        work = self._turn(body)
        if self._wrong("does_not_wait"):
            asyncio.get_running_loop().create_task(_forgiven(work))
            await asyncio.sleep(0.05)
            return
        try:
            await work
        except aiohttp.ClientError:
            if self._wrong("repeats_after_cuts"):
                await _forgiven(self._turn(body))
            for _ in range(40 if self._wrong("storms_after_cuts") else 0):
                await self._json("GET", f"/sessions/{self._session}")
            if self._wrong("leaves_after_cuts"):
                await self._open("examiner")

    async def _turn(self, messages: list[dict[str, Any]]) -> None:
        """Post, read to the end, answer what was asked, and read on."""
        while messages:
            self._calls.clear()
            stop = None
            async for name, data in self._events(self._body(messages)):
                stop = self._take(name, data) or stop
                if self._told.stop and self._actor.answer and not self._wrong("never_stops"):
                    return
            if stop == "error" and self._wrong("dies_of_errors"):
                raise RuntimeError("the turn failed")
            messages = await self._answers(stop)

    def _body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {"messages": messages, "stream": self._mode}
        if self._wrong("renames_agent"):
            body["agent"] = {"name": "examiner"}
        if self._wrong("wrong_case"):
            body["stream"] = self._mode.upper()
        return body

    def _take(self, name: str, data: dict[str, Any]) -> str | None:
        """One event; the reason, if the turn stops."""
        if self._wrong("strict_events") and name not in KNOWN:
            raise RuntimeError(f"what is {name}?")
        if self._wrong("strict_members") and "x_examiners" in data:
            raise RuntimeError("what is x_examiners?")
        if self._wrong("no_thinking") and name.startswith("thinking"):
            raise RuntimeError("it thinks")
        match name:
            case "text_delta":
                self._actor.answer = data["delta"] if self._wrong("last_delta") else self._actor.answer + data["delta"]
            case "text":
                self._actor.answer += "" if self._wrong("deltas_only") else data["text"]
            case "tool_call":
                self._calls[data["toolCallId"]] = data
            case "tool_result" if not self._wrong("answers_everything"):
                self._calls.pop(data["toolCallId"], None)
            case "turn_stop":
                return str(data["stopReason"])
        return None

    async def _answers(self, stop: str | None) -> list[dict[str, Any]]:
        if stop != "tool_use" and not (self._wrong("answers_everything") and self._calls):
            return []
        made = [self._answer(call) for call in self._calls.values()]
        if self._wrong("one_by_one") and len(made) > 1:
            pending = made.pop(0)
            await self._turn_once([pending])
        return made

    async def _turn_once(self, messages: list[dict[str, Any]]) -> None:
        async for _ in self._events(self._body(messages)):
            pass

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        ref = {"toolCallId": "call-0" if self._wrong("answers_nobody") else call["toolCallId"]}
        is_own = self._told.tool is not None and call["name"] == self._told.tool["name"]
        if is_own or self._wrong("one_kind"):
            return {"role": "tool", **ref, "content": self._told.result or "done"}
        granted = (self._told.decision == "allow") is not self._wrong("misdecides")
        answer: dict[str, Any] = {"role": "tool_permission", **ref, "granted": granted}
        return answer if granted else answer | {"reason": "not now"}

    # -- the wire ------------------------------------------------------------------------------------------------------

    async def _events(self, body: dict[str, Any]) -> AsyncIterator[Event]:
        path = f"/sessions/{self._session}/turns"
        limit = aiohttp.ClientTimeout(total=None, sock_read=1.0 if self._wrong("impatient") else None)
        response = await self._actor.attempt(lambda: self._request("POST", path, body, limit))
        async with response:
            if response.content_type == "application/json":
                for event in _unfolded(await response.json()):
                    yield event
                return
            async for event in self._streamed(response):
                yield event

    async def _streamed(self, response: aiohttp.ClientResponse) -> AsyncIterator[Event]:
        parser, is_over = SseParser(), False
        async for piece in response.content.iter_any():
            for event in parser.feed(b"" if self._wrong("naive_lines") and b"\r\n" in piece else piece):
                is_over = is_over or event.event == "turn_stop"
                yield event.event, orjson.loads(event.data)
            if self._wrong("no_comments") and parser.comments:
                raise RuntimeError("what is a line without a name?")
        if not is_over:
            raise aiohttp.ClientPayloadError("the stream ended before its turn")

    async def _request(
        self, method: str, path: str, body: Any = None, limit: aiohttp.ClientTimeout | None = None
    ) -> aiohttp.ClientResponse:
        headers = {"Authorization": f"Bearer {self._actor.cue.key}"} if self._actor.cue.key else {}
        if self._wrong("no_key"):
            headers = {}
        url = self._actor.cue.url + path
        return await self._http.request(method, url, json=body, headers=headers, timeout=limit or NO_LIMIT)

    async def _json(self, method: str, path: str, body: Any = None) -> Any:
        async with await self._actor.attempt(lambda: self._request(method, path, body)) as response:
            return await response.json()


NO_LIMIT = aiohttp.ClientTimeout(total=None)


def _unfolded(body: dict[str, Any]) -> list[Event]:
    """The events of a turn that is told at once."""
    events: list[Event] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            events.append(("tool_result", message))
            continue
        events += [("tool_call", block) for block in message["content"] if block["type"] == "tool_use"]
        events.append(("text", {"text": text_of(message["content"])}))
    return [*events, ("turn_stop", {"stopReason": body["stopReason"]})]


async def _forgiven(work: Any) -> None:
    try:
        await work
    except (aiohttp.ClientError, Gone):
        return


async def drive(cue: Cue, wrong: str | None = None) -> None:
    """Do what the cue says."""
    async with aiohttp.ClientSession() as http:
        await AapClient(cue, wrong, http).run()


if __name__ == "__main__":
    run_client(drive)
