"""An acp backend with the agent of the tests behind it, and turns to play with it."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.backends.acp import KIND, AcpBackend, AcpSettings
from tests.support.backends.turn_driver import FakeTurn, play

AGENT = Path(__file__).parent / "acp_agent.py"


class Turn(FakeTurn):
    """A turn of a session that remembers its metadata from turn to turn."""

    def __init__(self, *steps: Any, metadata: dict[str, Any] | None = None, **given: Any) -> None:
        self.metadata: dict[str, Any] = metadata if metadata is not None else {}
        command = (
            steps[0] if steps and isinstance(steps[0], m.SendMessage) else m.SendMessage(content=json.dumps(steps))
        )
        super().__init__(command, agent=KIND.card, **given)

    def record(self, event: Any, scope_id: str = "root") -> None:
        super().record(event, scope_id)
        if isinstance(event, m.SessionUpdated) and event.metadata is not None:
            self.metadata.update(event.metadata)


def settings(*flags: str, **given: Any) -> AcpSettings:
    return AcpSettings.model_validate({
        "command": sys.executable, "args": ["-I", "-S", str(AGENT), *flags], "root": "work", **given,
    })


@asynccontextmanager
async def backend(
    folder: Path, *flags: str, trust_uploads: bool = False, **given: Any,
) -> AsyncIterator[AcpBackend]:
    made = AcpBackend(settings(*flags, **given), folder, trust_uploads=trust_uploads)
    try:
        yield made
    finally:
        await made.close()


async def played(made: AcpBackend, *steps: Any, **given: Any) -> Turn:
    turn = Turn(*steps, **given)
    await play(made, turn)
    return turn


def text(words: str, kind: str = "agent_message_chunk", **more: Any) -> list[Any]:
    return ["update", {"sessionUpdate": kind, "content": {"type": "text", "text": words}, **more}]


def call(call_id: str, **told: Any) -> list[Any]:
    return ["update", {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": "Look", "kind": "read", **told}]


def progress(call_id: str, **told: Any) -> list[Any]:
    return ["update", {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **told}]


def printed(*words: str) -> list[Any]:
    return [{"type": "content", "content": {"type": "text", "text": word}} for word in words]
