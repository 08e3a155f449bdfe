"""An agent that remembers what it was told in confidence, and says nothing of it."""

from collections.abc import AsyncGenerator
from typing import Any

import gateway.model as m
from gateway.client import StreamAssembler
from gateway.ports import BackendEvent, Turn

RECEIVED: list[dict[str, Any]] = []
"""What the agent was given, turn by turn."""


class SecretRecordingAgent:
    """Asks whether to go on where the message says `/wait`."""

    card = m.AgentCard(name="confidant", options=(
        m.AgentOption(name="api_key", kind=m.OptionKind.SECRET),
        m.AgentOption(name="tone", kind=m.OptionKind.SELECT, choices=("kind", "plain"), default="kind"),
    ))

    async def run(self, turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        assert isinstance(turn.command, m.SendMessage)
        if "/wait" in str(turn.command.content):
            await turn.ask(m.ContinuationAsk(turn=1, message="Go on?"))
        RECEIVED.append({**turn.settings.secrets, **turn.command.variables})
        assembler = StreamAssembler(turn.mint)
        for said in (*assembler.text_delta("a", "Understood."), *assembler.finish()):
            yield said

    async def close(self) -> None:
        pass
