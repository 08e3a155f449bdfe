"""The keys of a running server: in memory, and read again soon after any process has changed them."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import structlog

from gateway.errors import GatewayError
from gateway.ports import KEY_PREFIX, AsyncKeyTable, Audit, Caller, Clock, Key, Keys, KeyUse, with_use
from gateway.supervision import take_error

from .keys import (
    KeyRule,
    add_key,
    found,
    hash_token,
    import_keys,
    issue_key,
    key_matches,
    read_key_file,
    relabel_key,
    remove_key,
    retire_key_file,
    revoke_key,
    visible_keys,
)

POLL_SECONDS = 0.25
"""How often the store is asked whether keys have changed, so that a key which another process removed is refused."""
MIN_POLL_SECONDS = 0.05
"""How often requests with unknown keys may cause a look into the store."""
STORE_USE_SECONDS = 5.0
"""How often the last uses of keys are stored."""

log = structlog.get_logger("dragoman.keys")
T = TypeVar("T")




class KeyService:
    """Verifies keys without asking the store; `on_removed` gets the hashes of removed keys."""

    def __init__(
        self, table: AsyncKeyTable, folder: Path, clock: Clock, *, on_removed: Callable[[Iterable[str]], None],
        audit: Audit = lambda event, caller, target: None,
    ) -> None:
        self._table = table
        self._folder = folder
        self._clock = clock
        self._on_removed = on_removed
        self._audit = audit
        self._version = -1
        self._by_hash: dict[str, Key] = {}
        self._uses: dict[str, KeyUse] = {}
        self._unstored: dict[str, KeyUse] = {}
        self._looking = asyncio.Lock()
        self._next_look: asyncio.Task[None] | None = None
        self._looked_at = float("-inf")
        self._is_away = False

    def __len__(self) -> int:
        """How many keys let their user in."""
        return sum(key.opens for key in self._by_hash.values())

    async def open(self) -> None:
        """Read the keys, and import those of an old key file; raises `Problems` if that file is broken."""
        old = read_key_file(self._folder)
        if old is not None:
            retire_key_file(self._folder, await self._changed(import_keys(old)))
        await self.refresh()

    async def poll(self) -> None:
        """Read changes of other processes, until cancelled."""
        time = asyncio.get_running_loop().time
        stored_at = time()
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self.refresh()
                if self._unstored and time() - stored_at >= STORE_USE_SECONDS:
                    stored_at = time()
                    await self._store_uses()
            except GatewayError as error:
                if not self._is_away:
                    log.error("keys_not_read", error=error.message)
                self._is_away = True
            else:
                self._is_away = False

    async def close(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        with suppress(GatewayError):
            await self._store_uses()
        await self._table.close()

    # -- authentication -------------------------------------------------------------------------------------------

    async def verify(self, token: str, address: str = "") -> Key | None:
        """The key, or None; an unknown key is looked up in the store, because another process may have created it."""
        hashed = hash_token(token)
        key = self._by_hash.get(hashed)
        if key is None:
            await self._look_soon()
            key = self._by_hash.get(hashed)
        if key is None or not key_matches(key, hashed):
            return None
        self._uses[hashed] = self._unstored[hashed] = KeyUse(self._clock(), address)
        return key

    async def refresh(self) -> None:
        """Read the keys again if they have changed; raises `GatewayError` if the store is away."""
        async with self._looking:
            if await self._table.version() == self._version:
                return
            before = self._by_hash
            self._version, keys = await self._table.load()
            self._by_hash = {key.hash: key for key in keys}
        gone = [key.hash for key in before.values() if key.opens and not self._opens(key.hash)]
        for one in gone:
            self._uses.pop(one, None)
            self._unstored.pop(one, None)
        if gone:
            self._on_removed(gone)

    def _opens(self, hashed: str) -> bool:
        key = self._by_hash.get(hashed)
        return key is not None and key.opens

    async def _look_soon(self) -> None:
        """Return after the store was read by a query that began after this call; concurrent callers share one query."""
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look(), name="look for a key")
            self._next_look.add_done_callback(take_error)
        await asyncio.shield(self._next_look)

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(max(0.0, self._looked_at + MIN_POLL_SECONDS - clock()))
        self._next_look, self._looked_at = None, clock()
        await self.refresh()

    async def _store_uses(self) -> None:
        uses, self._unstored = self._unstored, {}
        if uses:
            try:
                await self._table.touch(uses)
            except GatewayError:
                self._unstored = uses | self._unstored
                raise

    # -- the operator's keys --------------------------------------------------------------------------------------

    async def add(self, name: str, user: str | None = None, by: Caller | None = None) -> str:
        """Create a key and return its token, which is shown only now."""
        made, token = await self._changed(add_key(name, user))
        self._audit("key.created", by, f"{made.name} of {made.user}")
        return token

    async def remove(self, name: str, by: Caller | None = None) -> Keys:
        """Remove a key and the keys that were created with it; return all of them."""
        gone = await self._changed(remove_key(name))
        self._note_removed(gone, by)
        return gone

    # -- a user's keys ---------------------------------------------------------------------------------------------

    async def issue(self, caller: Caller, label: str, prefix: str = KEY_PREFIX) -> tuple[Key, str]:
        """Create a key for a user; its token is shown only now."""
        parent = caller.credential if caller.credential in self._by_hash else ""
        made, token = await self._changed(issue_key(caller.user, label, prefix, parent))
        self._audit("key.created", caller, made.name)
        return made, token

    async def all(self) -> Sequence[Key]:
        """The keys of all users in the order of their creation, each with its last use."""
        return await self._with_uses(list(visible_keys(self._by_hash.values())))

    async def of(self, user: str) -> Sequence[Key]:
        """The keys of a user in the order of their creation, each with its last use."""
        return await self._with_uses([key for key in visible_keys(self._by_hash.values()) if key.user == user])

    async def find(self, user: str, key_id: str) -> Key:
        return (await self._with_uses([found(tuple(self._by_hash.values()), user, key_id)]))[0]

    async def relabel(self, caller: Caller, key_id: str, label: str) -> Key:
        changed = await self._changed(relabel_key(caller.user, key_id, label))
        self._audit("key.updated", caller, changed.name)
        return (await self._with_uses([changed]))[0]

    async def revoke(self, caller: Caller, key_id: str) -> None:
        """Revoke a key, and the keys that were created with it."""
        self._note_removed(await self._changed(revoke_key(caller.user, key_id)), caller)

    def _note_removed(self, gone: Keys, by: Caller | None) -> None:
        for key in gone:
            self._audit("key.revoked", by, key.name if key is gone[0] else f"{key.name}, made by {gone[0].name}")

    async def _with_uses(self, keys: Keys) -> Sequence[Key]:
        stored = await self._table.uses([key.hash for key in keys])
        return [with_use(with_use(key, stored.get(key.hash)), self._uses.get(key.hash)) for key in keys]

    async def _changed(self, rule: KeyRule[T]) -> T:
        while True:
            version, keys = await self._table.load()
            change, result = rule(keys)
            if await self._table.change(version, change):
                await self.refresh()
                return result
