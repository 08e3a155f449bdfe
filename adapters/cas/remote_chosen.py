"""CAS, spoken to: which tools a session at the server has by now, and how it gets others."""

from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from gateway.errors import BackendFailed
from gateway.model import Settings

from .remote_lodging import Post, later_fields

log = structlog.get_logger("dragoman.cas")

MOST = 4096
"""So many sessions are remembered; to those forgotten everything is said once more."""
KEEPS = (400, 403, 404, 405, 409, 422, 501)
"""How a server refuses that keeps a session's agent as it is."""
PLAIN = later_fields(Settings())


class Chosen:
    """What was said of the agent of each session; only what has changed is said again."""

    def __init__(self, post: Post, own_tools: Callable[[], Awaitable[list[Any]]]) -> None:
        self._post, self._own_tools = post, own_tools
        self._said: dict[str, dict[str, Any]] = {}

    def note(self, session_id: str, settings: Settings) -> None:
        """The session was made with these."""
        self._said.pop(session_id, None)
        while len(self._said) >= MOST:
            del self._said[next(iter(self._said))]
        self._said[session_id] = later_fields(settings)

    async def bring(self, session_id: str, settings: Settings) -> None:
        """Say what has changed; where nobody remembers what was, only what is out of the ordinary."""
        before, now = self._said.get(session_id, PLAIN), later_fields(settings)
        changed = {name: value for name, value in now.items() if value != before[name]}
        if changed:
            if "tools" in changed and settings.tools is None:
                changed["tools"] = later_fields(settings, await self._own_tools())["tools"]
            try:
                await self._post(f"/sessions/{session_id}", {"agent": changed})
            except BackendFailed as error:
                if (error.details or {}).get("upstream_status") not in KEEPS:
                    raise
                log.warning("the server keeps the tools that a session was made with", session=session_id,
                            why=error.message)
        self.note(session_id, settings)
