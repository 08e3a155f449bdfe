"""A small correct CAS client, which can be wrong in one way at a time: `python -m conformance.clients.cas.client`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import aiohttp
import orjson

from conformance.clients.client_base import STORM, ClientBase, Gone, Refused, run_client
from conformance.clients.situation import ECHO, SERVER_TOOL, Cue
from conformance.faults.content import text_of
from conformance.kit.sse import SseParser

Event = dict[str, Any]
KNOWN = ("session.", "span.", "agent.", "user.")
RECONNECTS = 4


class CasClient:
    """One conversation."""

    def __init__(self, cue: Cue, wrong: str | None, http: aiohttp.ClientSession) -> None:
        self._actor, self._http = ClientBase(cue, wrong), http
        self._wrong, self._told = self._actor.is_wrong, cue.instruction
        self._session, self._cursor, self._partial = "", "", ""
        self._calls: dict[str, Event] = {}

    async def run(self) -> None:
        self._agent = (await self._json("POST", "/agents", self._new_agent()))["id"]
        await self._open()
        await self._actor.send_all(self._send)

    def _new_agent(self) -> dict[str, Any]:
        tools: list[dict[str, Any]] = []
        if self._told.server_tool:
            policy = {"type": "always_allow" if self._told.is_trusted else "always_ask"}
            configs = [{"name": SERVER_TOOL, "permission_policy": policy}]
            tools.append({"type": "agent_toolset_20260401", "enabled_tools": [SERVER_TOOL], "configs": configs})
        if self._told.tool:
            tool = self._told.tool
            about = {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            tools.append({"type": "custom", **about})
        return {"name": "small", "model": "reference", "tools": tools}

    async def _open(self) -> None:
        body: dict[str, Any] = {"agent": self._agent, "environment": {"config": {"type": "cloud"}}}
        if self._wrong("odd_version"):
            body["agent"] = {"id": self._agent, "version": None}
        if self._wrong("bare_environment"):
            body["environment"], body["environment_id"] = {"name": "x"}, "env_0"
        if self._wrong("variables_as_object"):
            body["environment_variables"] = {"A": "1"}
        self._session = (await self._json("POST", "/sessions", body))["id"]
        self._cursor = ""

    # -- turns ---------------------------------------------------------------------------------------------------------

    async def _send(self, text: str) -> None:
        if self._wrong("new_sessions"):
            await self._open()
        event: Event = {"type": "user.message", "content": text}
        if self._wrong("invents_types"):
            await self._post({"type": "user.greeting"})
        try:
            taken = await self._post(event)
        except Gone as error:
            if not self._wrong("repeats_without_key") or isinstance(error, Refused):
                raise
            taken = await self._post(event)
        self._cursor = self._cursor or str(taken["id"])
        others = self._told.messages[1:]
        if self._wrong("does_not_wait") and others and ECHO not in others:
            return
        await self._read()

    async def _read(self) -> None:
        """Read to the end of the turn, over several streams if need be, and answer what is asked."""
        for attempt in range(STORM if self._wrong("storms") else RECONNECTS):
            if attempt and not self._wrong("storms"):
                await asyncio.sleep(0.3 * 2**attempt)
            try:
                async for event in self._events():
                    if await self._take(event):
                        return
            except aiohttp.SocketTimeoutError:
                raise Gone("no event came") from None
            except (aiohttp.ClientError, Gone):
                await self._broken()
        raise Gone("the turn could not be read")

    async def _broken(self) -> None:
        if self._wrong("repeats_after_cuts"):
            await self._post({"type": "user.message", "content": self._told.messages[0]})
        if self._wrong("leaves_after_cuts"):
            await self._open()
            raise Gone("the stream broke")
        if self._wrong("cursor_of_a_part"):
            self._cursor = self._partial or "evt_0"

    async def _take(self, event: Event) -> bool:
        """One event; whether the turn is over."""
        kind = str(event["type"])
        if self._wrong("strict_events") and not kind.startswith(KNOWN):
            raise RuntimeError(f"what is {kind}?")
        if self._wrong("strict_members") and "x_examiners" in event:
            raise RuntimeError("what is x_examiners?")
        if self._wrong("no_threads") and kind.startswith("session.thread"):
            raise RuntimeError("what is a thread?")
        match kind:
            case "agent.message" if "session_thread_id" not in event:
                self._actor.answer += "" if self._wrong("deaf") else text_of(event["content"])
                await self._maybe_stop()
            case "agent.tool_use" | "agent.custom_tool_use":
                self._calls[event["id"]] = event
            case "session.status_idle":
                return await self._idle(event)
        return False

    async def _maybe_stop(self) -> None:
        if self._told.stop and not self._wrong("never_stops"):
            await self._post({"type": "user.interrupt"})

    async def _idle(self, event: Event) -> bool:
        reason = event["stop_reason"]
        if reason["type"] == "error" and self._wrong("dies_of_errors"):
            raise RuntimeError("the turn failed")
        if self._wrong("confirms_everything"):
            reason = {"type": reason["type"], "event_ids": [*self._calls]}
        elif reason["type"] != "requires_action":
            return True
        answers = [self._answer(self._calls.pop(ref)) for ref in reason["event_ids"] if ref in self._calls]
        if answers and not self._wrong("bare_events"):
            await self._post(*answers)
        for answer in answers if self._wrong("bare_events") else ():
            await self._post(answer)
        return bool(reason["type"] != "requires_action")

    def _answer(self, call: Event) -> Event:
        ref = "evt_0" if self._wrong("answers_nobody") else call["id"]
        if call["type"] == "agent.custom_tool_use" or self._wrong("one_kind"):
            return {"type": "user.custom_tool_result", "custom_tool_use_id": ref, "content": self._told.result or "x"}
        is_allowed = (self._told.decision != "deny") is not self._wrong("misdecides")
        answer = {"type": "user.tool_confirmation", "tool_use_id": ref, "result": "allow" if is_allowed else "deny"}
        return answer if is_allowed else answer | {"deny_message": "not now"}

    # -- the wire ------------------------------------------------------------------------------------------------------

    async def _post(self, *events: Event) -> Event:
        """The first of the events, as the server has taken it."""
        body: Any = {"events": list(events)} if not self._wrong("bare_events") else events[0]
        limit = aiohttp.ClientTimeout(total=1.0) if self._wrong("impatient_posts") else NO_LIMIT
        key = {} if self._wrong("repeats_without_key") else {"Idempotency-Key": uuid4().hex}
        path = f"/sessions/{self._session}/events"
        for attempt in (1, 2):
            try:
                response = await self._actor.attempt(lambda: self._request("POST", path, body, key, limit))
            except TimeoutError:
                if attempt == 2:
                    raise Gone("no answer") from None
            else:
                async with response:
                    taken: list[Event] = (await response.json())["data"]
                    return taken[0]
        raise Gone("no answer")

    async def _events(self) -> AsyncIterator[Event]:
        headers = {} if self._wrong("no_cursor") and self._actor.answer else {"Last-Event-ID": self._cursor}
        limit = aiohttp.ClientTimeout(total=None, sock_read=1.0) if self._wrong("impatient") else NO_LIMIT
        path, parser = f"/sessions/{self._session}/events/stream", SseParser()
        response = await self._request("GET", path, None, headers, limit)
        async with response:
            if response.status >= 400:
                raise Gone(f"refused with {response.status}")
            async for piece in response.content.iter_any():
                for event in parser.feed(b"" if self._wrong("naive_lines") and b"\r\n" in piece else piece):
                    self._cursor = event.id or self._cursor
                    yield orjson.loads(event.data)
                if self._wrong("no_comments") and "heartbeat" in parser.comments:
                    raise RuntimeError("what is a line without a name?")
                self._partial = parser.last_id
        raise aiohttp.ClientPayloadError("the stream ended before its turn")

    async def _request(
        self, method: str, path: str, body: Any, headers: dict[str, str], limit: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        key = {} if self._wrong("no_key") else {"Authorization": f"Bearer {self._actor.cue.key}"}
        url = self._actor.cue.url + path
        return await self._http.request(method, url, json=body, headers=headers | key, timeout=limit)

    async def _json(self, method: str, path: str, body: Any = None) -> Any:
        async with await self._actor.attempt(lambda: self._request(method, path, body, {}, NO_LIMIT)) as response:
            return await response.json()


NO_LIMIT = aiohttp.ClientTimeout(total=None)


async def drive(cue: Cue, wrong: str | None = None) -> None:
    """Do what the cue says."""
    async with aiohttp.ClientSession() as http:
        await CasClient(cue, wrong, http).run()


if __name__ == "__main__":
    run_client(drive)
