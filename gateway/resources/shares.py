"""Shares: a link with which anyone can read one session, until the link expires or is revoked."""

import secrets
from dataclasses import dataclass
from hashlib import sha256

from gateway.errors import Conflict, NotFound
from gateway.ports import Clock, Resource, Resources
from gateway.quotas import SYSTEM_OWNER

KIND = "share"
DEFAULT_TTL_SECONDS = 7 * 86_400.0
MAX_SHARES = 100
"""How many links a session may have at once."""


@dataclass(frozen=True, slots=True)
class Share:
    """One session of one user that a link gives access to."""

    owner: str
    session_id: str
    expires_at: float


class Shares:
    """The links of all sessions; the token of a link is shown once, and only its hash is stored."""

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock

    async def share(self, owner: str, session_id: str, ttl: float | None = None) -> tuple[str, Share]:
        """Create a link; return its token."""
        await self._sweep(session_id)
        token, share = secrets.token_urlsafe(32), Share(owner, session_id, self._clock() + (ttl or DEFAULT_TTL_SECONDS))
        await self._resources.create(
            KIND, SYSTEM_OWNER, {"owner": owner, "session_id": session_id, "expires_at": share.expires_at},
            parent=session_id, resource_id=_id_of(token), most_below=MAX_SHARES,
        )
        return token, share

    async def open(self, token: str) -> Share:
        found = await self._resources.get(KIND, SYSTEM_OWNER, _id_of(token))
        share = _share(found)
        if share.expires_at <= self._clock():
            raise NotFound("this link has expired")
        return share

    async def revoke(self, owner: str, session_id: str, token: str) -> None:
        """Revoke a link of this session."""
        found = _share(await self._resources.get(KIND, SYSTEM_OWNER, _id_of(token)))
        if (found.owner, found.session_id) != (owner, session_id):
            raise NotFound("there is no such link")
        await self._resources.delete(KIND, SYSTEM_OWNER, _id_of(token))

    async def forget(self, session_id: str) -> None:
        """Delete the links of a deleted session."""
        for one in await self._resources.list(KIND, SYSTEM_OWNER, parent=session_id, limit=MAX_SHARES):
            await self._resources.delete(KIND, SYSTEM_OWNER, one.resource_id)

    async def _sweep(self, session_id: str) -> None:
        """Delete expired links, and check that there is room for another."""
        found = await self._resources.list(KIND, SYSTEM_OWNER, parent=session_id, limit=MAX_SHARES + 1)
        gone = [one for one in found if _share(one).expires_at <= self._clock()]
        for one in gone:
            await self._resources.delete(KIND, SYSTEM_OWNER, one.resource_id)
        if len(found) - len(gone) >= MAX_SHARES:
            raise Conflict(f"the session has {MAX_SHARES} links already; revoke one first")


def _share(found: Resource) -> Share:
    return Share(found.body["owner"], found.body["session_id"], found.body["expires_at"])


def _id_of(token: str) -> str:
    return f"share_{sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
