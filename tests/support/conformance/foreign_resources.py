"""What somebody else has on a server: it is there before an examination, and must be there after it."""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from tests.support.conformance.examinations import KEY

SOMEBODY = {"user_id": "somebody-else", "title": "Not yours"}
Ask = Callable[..., Awaitable[Any]]
Lists = dict[str, Any]


async def _make_aap(ask: Ask) -> None:
    await ask("POST", "/sessions", json={"agent": {"name": "able"}})


async def _make_cas(ask: Ask) -> None:
    agent = await ask("POST", "/agents", json={"name": "Theirs", "model": "reference"})
    environment = await ask("POST", "/environments", json={"name": "Theirs", "config": {"type": "cloud"}})
    await ask("POST", "/sessions", json={"agent": agent["id"], "environment_id": environment["id"], "title": "Theirs"})
    await ask("POST", "/vaults", json={"display_name": "Theirs"})
    await ask("POST", "/memory_stores", json={"name": "Theirs"})
    form = aiohttp.FormData()
    form.add_field("file", b"Theirs", filename="theirs.txt")
    await ask("POST", "/files", data=form)


async def _make_blade(ask: Ask) -> None:
    task = {"title": "Theirs", "prompt": "Report.", "cron": "0 9 * * *", "timezone": "Asia/Shanghai"}
    await ask("POST", "/api/sessions", json={"intent": "Theirs", "is_persistent": True})
    await ask("POST", "/api/memories", json={"content": "Theirs", "type": "feedback"})
    await ask("POST", "/api/user/api-keys/", json={"name": "Theirs"})
    await ask("POST", "/api/scheduled-tasks", json=task)


async def _make_zenflux(ask: Ask) -> None:
    await ask("POST", "/api/v1/conversations", params=SOMEBODY)


MAKE = {"aap": _make_aap, "blade": _make_blade, "cas": _make_cas, "zenflux": _make_zenflux}
LISTS = {
    "aap": ["/sessions"],
    "cas": [f"/{kind}?limit=100&include_archived=true"
            for kind in ("sessions", "agents", "environments", "files", "vaults", "memory_stores")],
    "blade": ["/api/sessions?limit=100", "/api/memories?limit=100", "/api/user/api-keys/", "/api/scheduled-tasks"],
    "zenflux": ["/api/v1/conversations?user_id=somebody-else", "/api/v1/sessions",
                "/api/v1/human-confirmation/pending"],
}  # fmt: skip
HELD = ("sessions", "talks", "agents", "memories", "keys", "tasks", "conversations")


class OtherUser:
    """A user of a server who is not the examiner."""

    def __init__(self, dialect: str, url: str, session: aiohttp.ClientSession) -> None:
        self._dialect = dialect
        self._url = url
        self._session = session

    async def ask(self, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with self._session.request(method, self._url + path, headers=headers, **more) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def make(self) -> None:
        """Make one thing of every kind."""
        await MAKE[self._dialect](self.ask)

    async def lists(self) -> Lists:
        """All that the server lists."""
        return {path: await self.ask("GET", path) for path in LISTS[self._dialect]}


def held(server: Any) -> dict[str, list[str]]:
    """The names of all that a reference server holds, listed or not."""
    shelves = {name: sorted(shelf) for name, shelf in getattr(server, "shelves", {}).items() if shelf}
    things = {name: getattr(server, name, None) for name in HELD}
    return shelves | {name: sorted(found) for name, found in things.items() if isinstance(found, dict)}
