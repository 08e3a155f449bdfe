"""Rules of `route` move turns to another agent and back while the server runs; nothing is lost either way."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import gateway.model as m
from gateway.config import ConfigProblems, RouteSettings, load_config
from gateway.ports import ANONYMOUS, Caller
from gateway.reload import ReloadRequests
from gateway.storage.resources import MemoryResources
from gateway.turn_routes import TurnRoutes, place_of
from tests.support.gateway_server import Served, reloadable, serving, until, write_settings

OWNER = ANONYMOUS
NEW_AGENT = '''
async def reply(text):
    if "break" in text:
        raise RuntimeError("no")
    yield f"New: {text}"
'''
RULE: dict[str, Any] = {"to": "new", "agents": ["old"]}


def settings(folder: Path, **rule: Any) -> dict[str, Any]:
    (folder / "route_agent.py").write_text(NEW_AGENT)
    agents = {"old": {"backend": "demo"}, "new": {"backend": "python", "settings": {"agent": "route_agent:reply"}}}
    return {"agents": agents, "route": [RULE | rule]}


def answer(ask: m.OpenAsk) -> m.AnswerQuestion:
    return m.AnswerQuestion(request_id=ask.request_id, custom={"0": "yes", "1": "no"})


def message(text: str) -> list[m.AnyCommand]:
    return [m.SendMessage(content=text)]


async def say(served: Served, session_id: str, text: str) -> str:
    """Send a message, and return the last words of the agent when the turn is over."""
    sessions = served.gateway.sessions
    await sessions.submit(OWNER, session_id, message(text))
    return await last_words(served, session_id)


async def last_words(served: Served, session_id: str) -> str:
    table = served.gateway.table
    await until(lambda: table.get(session_id) is not None and table.get(session_id).run is None)  # type: ignore[union-attr]
    entries = (await served.gateway.sessions.get(OWNER, session_id)).entries
    return m.text_of(entries[-1].content)


async def new_session(served: Served) -> str:
    return (await served.gateway.sessions.create(OWNER, "old")).session_id


def change_line(folder: Path, old: str, new: str) -> None:
    file = folder / "config.yaml"
    text = file.read_text()
    assert text.count(old) == 1, text
    file.write_text(text.replace(old, new))


async def runners(served: Served, session_id: str) -> list[str | None]:
    """Which agent ran each turn, by the log; None for the agent of the session."""
    records = await served.gateway.sessions.records(OWNER, session_id)
    return [record.event.agent for record in records if isinstance(record.event, m.TurnStarted)]


async def test_cutting_over_is_one_line_and_so_is_going_back_and_nothing_is_lost(tmp_path: Path) -> None:
    requests = ReloadRequests()
    given = settings(tmp_path, share="0%")
    async with serving(tmp_path, reloads=requests, log="sqlite", **given) as served, reloadable(
            served.gateway, requests):
        ids = [await new_session(served) for _ in range(24)]
        assert [await say(served, one, "first") for one in ids] == ["You said: first"] * 24
        submit = served.gateway.sessions.submit
        for number, one in enumerate(ids):
            await submit(OWNER, one, message(("/slow 5 second", "/ask second", "second")[number % 3]))
        assert served.gateway.table.turn_count >= 16, "turns run, and asks are open"
        change_line(tmp_path, "share: 0%", "share: 100%")
        assert await requests.reload() is None
        waiting = [one for one in ids if (await served.gateway.sessions.get(OWNER, one)).asks]
        assert len(waiting) == 8
        for one in waiting:
            [ask] = (await served.gateway.sessions.get(OWNER, one)).asks.values()
            assert isinstance(ask.ask, m.QuestionAsk)
            await submit(OWNER, one, [answer(ask)])
        await asyncio.gather(*(last_words(served, one) for one in ids))
        assert [await runners(served, one) for one in ids] == [[None, None]] * 24, "who began a turn ends it"
        assert await asyncio.gather(*(say(served, one, "third") for one in ids)) == ["New: third"] * 24
        await asyncio.sleep(2)
        change_line(tmp_path, "share: 100%", "share: 0%")
        assert await requests.reload() is None
        assert await asyncio.gather(*(say(served, one, "fourth") for one in ids)) == ["You said: fourth"] * 24
        for one in ids:
            assert await runners(served, one) == [None, None, "new", None]
            records = await served.gateway.sessions.records(OWNER, one)
            ended = [record.event.outcome for record in records if isinstance(record.event, m.TurnEnded)]
            assert ended == [m.Outcome.COMPLETED] * 4
            said = [m.text_of(record.event.command.content) for record in records
                    if isinstance(record.event, m.InputAccepted) and isinstance(record.event.command, m.SendMessage)]
            assert [words.split()[-1] for words in said] == ["first", "second", "third", "fourth"]


async def test_a_share_is_sticky_also_after_a_restart(tmp_path: Path) -> None:
    given = settings(tmp_path, share=0.5)
    async with serving(tmp_path, log="sqlite", **given) as served:
        ids = [await new_session(served) for _ in range(20)]
        first = {one: await say(served, one, "a") for one in ids}
        assert first == {one: await say(served, one, "a") for one in ids}
    async with serving(tmp_path, log="sqlite", **given) as served:
        assert first == {one: await say(served, one, "a") for one in ids}
    assert set(first.values()) == {"You said: a", "New: a"}


async def test_a_turn_that_waits_goes_on_with_its_agent_after_a_restart_with_another_rule(tmp_path: Path) -> None:
    asking = settings(tmp_path)
    asking["agents"]["new"] = {"backend": "demo"}
    async with serving(tmp_path, log="sqlite", **asking) as served:
        session_id = await new_session(served)
        await served.gateway.sessions.submit(OWNER, session_id, message("/ask"))
        await until(lambda: served.gateway.table.get(session_id).view.asks)  # type: ignore[union-attr]
    asking["route"] = []
    asking["agents"]["old"] = {"backend": "python", "settings": {"agent": "route_agent:reply"}}
    async with serving(tmp_path, log="sqlite", **asking) as served:
        [ask] = (await served.gateway.sessions.get(OWNER, session_id)).asks.values()
        await served.gateway.sessions.submit(
            OWNER, session_id, [answer(ask)])
        assert not (await last_words(served, session_id)).startswith("New")
        records = await served.gateway.sessions.records(OWNER, session_id)
        [end] = [record.event for record in records if isinstance(record.event, m.TurnEnded)]
        assert end.outcome is m.Outcome.COMPLETED


async def test_failures_bring_turns_back_until_the_rule_is_edited(tmp_path: Path) -> None:
    unless = {"failures": "20%", "over": "5m", "turns": 4}
    given, requests = settings(tmp_path, unless=unless), ReloadRequests()
    async with serving(tmp_path, log="sqlite", **given) as served:
        session_id = await new_session(served)
        for text in ("a", "b", "c"):
            assert await say(served, session_id, text) == f"New: {text}"
        await say(served, session_id, "break")
        assert await say(served, session_id, "d") == "You said: d", "one of four is more than a fifth"
    async with serving(tmp_path, reloads=requests, log="sqlite", **given) as served, reloadable(
            served.gateway, requests):
        assert await say(served, session_id, "e") == "You said: e", "and so after a restart"
        change_line(tmp_path, "failures: 20%", "failures: 50%")
        assert await requests.reload() is None
        assert await say(served, session_id, "f") == "New: f"


async def test_old_failures_do_not_count() -> None:
    now = [0.0]
    rule = RouteSettings.model_validate(RULE | {"unless": {"failures": "10%", "over": "5m", "turns": 2}})
    routes = TurnRoutes([rule], MemoryResources(lambda: now[0]), lambda: now[0])
    view = m.SessionView(session_id="s", agent="old")
    chosen = routes.choose(view, ())
    assert chosen is not None
    failed = m.TurnEnded(
        outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=m.Fault(code=m.FaultCode.BACKEND, message="no"))
    wrong = m.TurnEnded(
        outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=m.Fault(code=m.FaultCode.INVALID, message="no"))
    for _ in range(5):
        routes.turn_ended(chosen.rule, wrong)
    assert routes.choose(view, ()) is not None, "what the client did wrong is no failure of the agent"
    for _ in range(3):
        now[0] += 301
        routes.turn_ended(chosen.rule, failed)
    assert routes.choose(view, ()) is not None, "one turn within five minutes is less than two"
    routes.turn_ended(chosen.rule, failed)
    assert routes.choose(view, ()) is None
    await routes.close()


async def test_a_larger_share_has_all_sessions_of_a_smaller_one() -> None:
    def moved(share: Sequence[str]) -> list[set[str]]:
        found = []
        for one in share:
            routes = TurnRoutes([RouteSettings(to="new", share=one)], MemoryResources(lambda: 0.0), lambda: 0.0)  # type: ignore[arg-type]
            views = [m.SessionView(session_id=f"sess_{number}", agent="old") for number in range(2000)]
            found.append({view.session_id for view in views if routes.choose(view, ()) is not None})
        return found

    none, tenth, half, everything = moved(["0%", "10%", "50%", "100%"])
    assert none < tenth < half < everything
    assert 150 < len(tenth) < 250
    assert len(everything) == 2000
    assert 0 <= place_of("\ud800") < 1


def test_keys_and_headers_choose_requests() -> None:
    rules = [RouteSettings(to="new", keys=("laptop",), header={"X-Way": "new"})]
    routes = TurnRoutes(rules, MemoryResources(lambda: 0.0), lambda: 0.0)
    view = m.SessionView(session_id="s", agent="old")

    def way(**caller: Any) -> bool:
        [command] = routes.marked(Caller(**caller), message("hello"))
        assert isinstance(command, m.SendMessage)
        return routes.choose(view, command.via) is not None

    assert routes.headers == {"x-way"}
    assert way(key="laptop", credential="h", tags={"x-way": "new"})
    assert not way(key="laptop", credential="h", tags={"x-way": "old"})
    assert not way(key="phone", credential="h", tags={"x-way": "new"})
    assert not way(key="laptop", tags={"x-way": "new"}), "a name without a credential is nobody's"


async def test_a_header_moves_a_turn(tmp_path: Path) -> None:
    async with serving(tmp_path, **settings(tmp_path, header={"X-Way": "new"})) as served:
        for headers, words in (({}, "You said: "), ({"X-Way": "new"}, "New: ")):
            async with served.http.post(
                    served.url("/aap/sessions"), json={"agent": {"name": "old"}}, headers=headers) as made:
                session = (await made.json())["sessionId"]
            body = {"stream": "none", "messages": [{"role": "user", "content": "hello"}]}
            async with served.http.post(
                    served.url(f"/aap/sessions/{session}/turns"), json=body, headers=headers) as turn:
                assert f"{words}hello" in await turn.text()


@pytest.mark.parametrize(("line", "place", "text"), [
    ("  - {to: nwe}", "6:10", "there is no agent 'nwe'; did you mean 'new'?"),
    ("  - {to: new, agents: [odl]}", "6:24", "there is no agent 'odl'; did you mean 'old'?"),
    ("  - {to: new, agents: [new]}", "6:23", "the sessions of 'new' are run by it already"),
    ("  - {to: new, share: much}", "6:22", "expected a share such as 10% or 0.1, not 'much'"),
    ("  - {to: new, unless: {failures: 2%, over: soon}}", "6:44", "expected a time such as 30s, 5m or 1h, not 'soon'"),
    ("  - {to: new, shar: 10%}", "6:15", "shar"),
])
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, line: str, place: str, text: str) -> None:
    file = tmp_path / "config.yaml"
    head = "agents:\n  old: {backend: demo}\n  new: {backend: demo}\ndialects: {aap: }\nroute:\n"
    file.write_text(f"{head}{line}\n")
    with pytest.raises(ConfigProblems) as found:
        load_config(file)
    [problem] = [str(one) for one in found.value.problems]
    assert f"config.yaml:{place}" in problem, problem
    assert text in problem


def test_settings_are_written_as_people_write_them(tmp_path: Path) -> None:
    write_settings(tmp_path, **settings(tmp_path, share="10%", unless={"failures": "2%", "over": "5m"}))
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["route"][0]["share"] == "10%"
    [rule] = load_config(tmp_path / "config.yaml").route
    assert (rule.share, rule.unless and rule.unless.failures, rule.unless and rule.unless.over) == (0.1, 0.02, 300.0)


async def test_a_server_that_runs_turns_again_goes_on_with_its_session(tmp_path: Path) -> None:
    for folder in ("upstream", "gateway"):
        (tmp_path / folder).mkdir()
    async with serving(tmp_path / "upstream") as upstream:
        agents = {
            name: {"backend": "remote", "settings": {"dialect": dialect, "url": upstream.url(path)}}
            for name, dialect, path in (("old", "aap", "/aap"), ("new", "cas", "/api/v1/cloud"))}
        session_id = ""
        for share, words in ((0, "first"), (1, "second"), (0, "third")):
            given = {"agents": agents, "route": [RULE | {"share": share}]}
            async with serving(tmp_path / "gateway", log="sqlite", **given) as served:
                session_id = session_id or await new_session(served)
                assert await say(served, session_id, words) == f"You said: {words}"
        there, _ = await upstream.gateway.sessions.list(OWNER)
        said = [[m.text_of(entry.content) for entry in view.entries if entry.role is m.Role.USER] for view in there]
    assert ["first", "third"] in said, "the old server has one session of it"
    assert len(said) == 2
