"""The change to a new agent and back, under load: turns run and asks are open at both moments, and nothing is lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.reload import ReloadRequests
from tests.support.dialect_tables import DIALECTS
from tests.support.dialect_tables import dialect as dialect_of
from tests.support.gateway_server import Served, reloadable, serving, until
from tests.support.migration.old_server import ANSWERS, TOOLS, gateway

WORDS = ("/slow 200 {}", "/ask {}", "{}")
"""A third of the turns runs at the moment of the change, a third waits for people, and a third may be over."""
SESSIONS = 12


class Change:
    """The gateway before an old server, its sessions, and the one line that is changed."""

    def __init__(self, folder: Path, served: Served, requests: ReloadRequests) -> None:
        self._folder, self.served, self._requests = folder, served, requests
        self.sessions = served.gateway.sessions
        self.ids: list[str] = []

    async def share(self, before: str, after: str) -> None:
        file = self._folder / "config.yaml"
        text = file.read_text()
        assert text.count(f"share: {before}") == 1, text
        file.write_text(text.replace(f"share: {before}", f"share: {after}"))
        assert await self._requests.reload() is None
        await asyncio.sleep(2)

    async def say(self, word: str, *ways: str) -> None:
        for number, session_id in enumerate(self.ids):
            text = ways[number % len(ways)].format(word)
            await self.sessions.submit("", session_id, [m.SendMessage(content=text)])

    async def asked(self) -> None:
        """Some turns wait for people, and some have begun to speak."""
        waiting = SESSIONS // 3
        table = self.served.gateway.table
        await until(lambda: sum(bool(one.view.asks) for one in table) == waiting)
        assert table.turn_count >= 2 * waiting, "turns run, and asks are open"

    async def finish(self) -> None:
        """Answer all that is asked until no turn runs."""
        while self.served.gateway.table.turn_count:
            for session_id in self.ids:
                view = await self.sessions.get("", session_id)
                if view.asks:
                    answers = [ANSWERS[ask.ask.kind](ask) for ask in view.asks.values()]
                    await self.sessions.submit("", session_id, answers)
            await asyncio.sleep(1)

    async def judge(self, session_id: str) -> tuple[list[str | None], list[str], list[m.Outcome]]:
        """Which agent ran each turn, the last word of each message, and how each turn ended."""
        events = [record.event for record in await self.sessions.records("", session_id)]
        said = [event.command.content for event in events
                if isinstance(event, m.InputAccepted) and isinstance(event.command, m.SendMessage)]
        return (
            [event.agent for event in events if isinstance(event, m.TurnStarted)],
            [m.text_of(content).split()[-1] for content in said],
            [event.outcome for event in events if isinstance(event, m.TurnEnded)],
        )


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_nothing_is_lost_either_way(tmp_path: Path, dialect: str) -> None:
    requests, folder = ReloadRequests(), tmp_path / "new"
    folder.mkdir()
    async with gateway(tmp_path / "old") as old:
        settings: dict[str, Any] = {"dialect": dialect, "url": old.url(dialect_of(dialect).mount)}
        agents = {"old": {"backend": "remote", "settings": settings, "tools": TOOLS}, "new": {"backend": "demo"}}
        route = [{"to": "new", "agents": ["old"], "share": "0%"}]
        async with serving(folder, reloads=requests, log="sqlite", agents=agents, route=route) as served, reloadable(
                served.gateway, requests):
            change = Change(folder, served, requests)
            change.ids = [(await change.sessions.create("", "old")).session_id for _ in range(SESSIONS)]
            await change.say("first", "{}")
            await change.finish()
            await change.say("second", *WORDS)
            await change.asked()
            await change.share("0%", "100%")
            await change.finish()
            await change.say("third", *WORDS)
            await change.asked()
            await change.share("100%", "0%")
            await change.finish()
            await change.say("fourth", "{}")
            await change.finish()
            for session_id in change.ids:
                runners, said, outcomes = await change.judge(session_id)
                assert runners == [None, None, "new", None], "who began a turn ends it"
                assert said == ["first", "second", "third", "fourth"]
                assert outcomes == [m.Outcome.COMPLETED] * 4
        assert await words_there(old) == [["first", "second", "fourth"]] * SESSIONS, "what its agent was told"


async def words_there(old: Served) -> list[list[str]]:
    """The last words that people said, by session of the old server, and that each was answered."""
    found = []
    for head in await old.gateway.sessions.heads(""):
        view = await old.gateway.sessions.get("", head.session_id)
        assert view.turn_id is None
        assert view.entries[-1].role is m.Role.ASSISTANT
        found.append([m.text_of(m.parts_of(entry.content)).split()[-1] for entry in view.entries
                      if entry.role is m.Role.USER])
    return found
