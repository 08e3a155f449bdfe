"""A published SDK of the sessions API as a client under test: `python managed_sdk.py qca` (or `anthropic`)."""

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import qca as qca_errors
from qca import managed as qca

from conformance.clients.situation import ECHO, Cue, Instruction

RESUMES = 4
FAILURES = (qca_errors.APIError, anthropic.AnthropicError, httpx.HTTPError, httpx2.HTTPError)


def client_of(name: str, cue: Cue) -> Any:
    """The resources that sessions need, below one name."""
    if name == "qca":
        return qca.Managed(pat=cue.key or "x", base_url=cue.url)
    return anthropic.Anthropic(auth_token=cue.key or "x", base_url=cue.url).beta


class Conversation:
    """What a user of the SDK writes around it: send, read to idle, answer, open the stream again if it breaks."""

    def __init__(self, name: str, cue: Cue) -> None:
        self._told: Instruction = cue.instruction
        self._api = client_of(name, cue)
        agent = self._api.agents.create(name="sdk", model="reference", tools=self._tools())
        environment = self._api.environments.create(name="e", config={"type": "cloud"})
        self._session = self._api.sessions.create(agent=agent.id, environment_id=environment.id).id
        self._cursor, self._calls = "", dict[str, Any]()

    def run(self) -> None:
        answer = ""
        for message in self._told.messages:
            text = answer if message == ECHO else message
            try:
                sent = self._post({"type": "user.message", "content": [{"type": "text", "text": text}]})
                self._cursor = self._cursor or sent.data[0].id
                answer = self._read()
            except FAILURES as error:
                print(type(error).__name__, error, file=sys.stderr)

    def _tools(self) -> list[Any]:
        tools: list[Any] = []
        if self._told.server_tool:
            policy = {"type": "always_allow" if self._told.is_trusted else "always_ask"}
            configs = [{"name": self._told.server_tool, "permission_policy": policy, "enabled": True}]
            tools.append({"type": "agent_toolset_20260401", "configs": configs})
        if self._told.tool:
            about = {"name": self._told.tool["name"], "description": self._told.tool["description"]}
            tools.append({"type": "custom", **about, "input_schema": self._told.tool["parameters"]})
        return tools

    def _read(self) -> str:
        said = ""
        for attempt in range(RESUMES):
            time.sleep(attempt)
            try:
                for event in self._events():
                    said += self._text(event)
                    if self._told.stop and said:
                        self._post({"type": "user.interrupt"})
                    if self._is_over(event):
                        return said
            except FAILURES as error:
                print(type(error).__name__, error, file=sys.stderr)
        return said

    def _events(self) -> Iterator[Any]:
        headers = {"Last-Event-ID": self._cursor}
        with self._api.sessions.events.stream(self._session, extra_headers=headers) as stream:
            for event in stream:
                self._cursor = getattr(event, "id", None) or self._cursor
                yield event

    def _text(self, event: Any) -> str:
        if event.type in ("agent.tool_use", "agent.custom_tool_use"):
            self._calls[event.id] = event
        is_answer = event.type == "agent.message" and not getattr(event, "session_thread_id", None)
        return "".join(block.text for block in event.content) if is_answer else ""

    def _is_over(self, event: Any) -> bool:
        if event.type != "session.status_idle":
            return False
        if event.stop_reason.type != "requires_action":
            return True
        self._post(*(self._answer(self._calls[ref]) for ref in event.stop_reason.event_ids))
        return False

    def _answer(self, call: Any) -> dict[str, Any]:
        if call.type == "agent.custom_tool_use":
            content = [{"type": "text", "text": self._told.result or ""}]
            return {"type": "user.custom_tool_result", "custom_tool_use_id": call.id, "content": content}
        return {"type": "user.tool_confirmation", "tool_use_id": call.id, "result": self._told.decision or "allow"}

    def _post(self, *events: dict[str, Any]) -> Any:
        return self._api.sessions.events.send(self._session, events=list(events))


if __name__ == "__main__":
    Conversation(sys.argv[1], Cue.from_environment(os.environ)).run()
