"""An agent that remembers what it was told in confidence, and says nothing of it."""

from collections.abc import AsyncGenerator
from typing import Any

from gateway.model import AgentCard, AgentOption, ContinuationAsk, OptionKind, SendMessage
from gateway.ports import Said, Turn
from gateway.speech import Scribe

HEARD: list[dict[str, Any]] = []
"""What the agent was given, turn by turn."""


class Confidant:
    """Asks whether to go on where the message says `/wait`."""

    card = AgentCard(name="confidant", options=(
        AgentOption(name="api_key", kind=OptionKind.SECRET),
        AgentOption(name="tone", kind=OptionKind.SELECT, choices=("kind", "plain"), default="kind"),
    ))

    async def run(self, turn: Turn) -> AsyncGenerator[Said, None]:
        assert isinstance(turn.command, SendMessage)
        if "/wait" in str(turn.command.content):
            await turn.ask(ContinuationAsk(turn=1, message="Go on?"))
        HEARD.append({**turn.settings.secrets, **turn.command.variables})
        scribe = Scribe(turn.mint)
        for said in (*scribe.words("a", "Understood."), *scribe.finish()):
            yield said

    async def close(self) -> None:
        pass
