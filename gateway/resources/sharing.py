"""Shares: whoever has the link may read one session, until it expires or is taken back."""

import secrets
from dataclasses import dataclass
from hashlib import sha256

from gateway.errors import Conflict, NotFound
from gateway.ports import Clock, Resource, Resources
from gateway.quotas import HOUSE

KIND = "share"
TTL = 7 * 86_400.0
MOST = 100
"""How many links a session has at once."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a link opens: one session of one user, for reading."""

    owner: str
    session_id: str
    expires_at: float


class Sharing:
    """The links of all sessions; a link's word is shown once, and only its hash is kept."""

    def __init__(self, resources: Resources, clock: Clock) -> None:
        self._resources = resources
        self._clock = clock

    async def share(self, owner: str, session_id: str, ttl: float | None = None) -> tuple[str, Share]:
        """A new word, and what it opens."""
        await self._sweep(session_id)
        token, share = secrets.token_urlsafe(32), Share(owner, session_id, self._clock() + (ttl or TTL))
        await self._resources.create(
            KIND, HOUSE, {"owner": owner, "session_id": session_id, "expires_at": share.expires_at},
            parent=session_id, resource_id=_id_of(token), most_below=MOST,
        )
        return token, share

    async def open(self, token: str) -> Share:
        found = await self._resources.get(KIND, HOUSE, _id_of(token))
        share = _share(found)
        if share.expires_at <= self._clock():
            raise NotFound("this link has expired")
        return share

    async def revoke(self, owner: str, session_id: str, token: str) -> None:
        """Only a link of this very session, whosever word it is."""
        found = _share(await self._resources.get(KIND, HOUSE, _id_of(token)))
        if (found.owner, found.session_id) != (owner, session_id):
            raise NotFound("there is no such link")
        await self._resources.delete(KIND, HOUSE, _id_of(token))

    async def forget(self, session_id: str) -> None:
        """The session is gone, and its links with it."""
        for one in await self._resources.list(KIND, HOUSE, parent=session_id, limit=MOST):
            await self._resources.delete(KIND, HOUSE, one.resource_id)

    async def _sweep(self, session_id: str) -> None:
        """Forget what has expired, and make sure that there is room."""
        found = await self._resources.list(KIND, HOUSE, parent=session_id, limit=MOST + 1)
        gone = [one for one in found if _share(one).expires_at <= self._clock()]
        for one in gone:
            await self._resources.delete(KIND, HOUSE, one.resource_id)
        if len(found) - len(gone) >= MOST:
            raise Conflict(f"the session has {MOST} links already; take one back first")


def _share(found: Resource) -> Share:
    return Share(found.body["owner"], found.body["session_id"], found.body["expires_at"])


def _id_of(token: str) -> str:
    return f"share_{sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
