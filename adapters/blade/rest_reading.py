"""What was said in a session, and what Blade keeps beside it, for handlers that have no socket."""

from typing import Any

from gateway.model import PRIVATE, SessionView
from gateway.web import Context

from . import views


async def messages_of(house: Context, owner: str, session_id: str, *, upto: int | None = None) -> list[Any]:
    """Every turn that stands, as it was after that record."""
    records = await house.sessions.records(owner, session_id)
    return views.messages(house.table, records if upto is None else records[:upto])


async def keep(
    house: Context, owner: str, session_id: str, title: str | None = None, /, **kept: Any,
) -> SessionView:
    """Put something beside the session that is Blade's alone; everybody who watches is told."""
    view = await house.sessions.get(owner, session_id)
    ours = view.private(house.dialect) | kept
    private = view.metadata.get(PRIVATE, {}) | {house.dialect: ours}
    return await house.sessions.update(owner, session_id, title=title, metadata={**view.metadata, PRIVATE: private})
