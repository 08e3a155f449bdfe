"""What somebody else has on a server: it is there before an examination, and must be there after it."""

from typing import Any

import aiohttp

from tests.support.conformance.examination_facts import KEY, examination_facts

Lists = dict[str, Any]
HELD = ("sessions", "talks", "agents", "memories", "keys", "tasks", "conversations", "skills", "settings")
HELD += ("tools", "mcp_servers", "enabled")


class OtherUser:
    """A user of a server who is not the examiner."""

    def __init__(self, dialect: str, url: str, session: aiohttp.ClientSession) -> None:
        self._facts = examination_facts(dialect)
        self._url = url
        self._session = session

    async def ask(self, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with self._session.request(method, self._url + path, headers=headers, **more) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def make(self) -> None:
        """Make one thing of every kind."""
        await self._facts.make_foreign(self.ask)

    async def lists(self) -> Lists:
        """All that the server lists."""
        return {path: await self.ask("GET", path) for path in self._facts.foreign_lists}


def held(server: Any) -> dict[str, list[str]]:
    """The names of all that a reference server holds, listed or not."""
    state = getattr(server, "state", server)
    things = {name: getattr(state, name, None) for name in HELD}
    return {name: sorted(found) for name, found in things.items() if isinstance(found, dict)}
