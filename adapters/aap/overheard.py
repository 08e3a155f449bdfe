"""AAP, overheard: what an application said, read out of the turns it asked for."""

from collections.abc import Sequence

from pydantic import ValidationError

from gateway.model import AgentCard, AnyCommand, Capabilities, Configure, SessionView
from gateway.upstream import Frame
from mappings.language import Table

from .inbound import commands_of, settings_of
from .wire import NewSession, NewTurn

CARD = AgentCard(name="", capabilities=Capabilities(images=("http", "data")))
"""Whatever the agent was, it has taken what was sent."""


def overheard(frame: Frame, view: SessionView, table: Table) -> Sequence[AnyCommand]:
    """The commands of one request: a turn, or a session and what it was made with; nothing for any other."""
    try:
        if frame.name.startswith("POST ") and frame.name.endswith("/turns"):
            body = NewTurn.model_validate(frame.body)
            override = body.agent.model_copy(update={"name": None}) if body.agent is not None else None
            return commands_of(body.model_copy(update={"agent": override}), view, CARD, table)
        if frame.name.startswith("POST ") and frame.name.endswith("/sessions"):
            return [Configure(settings=settings_of(NewSession.model_validate(frame.body), CARD))]
    except ValidationError:
        return ()  # it was refused
    return ()
