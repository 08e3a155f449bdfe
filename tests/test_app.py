"""Everything together: refusals by mount, metrics, replay, reloading, and what is lost in translation."""

from pathlib import Path

import orjson
import pytest
import yaml

from gateway.app import describe_components
from gateway.composition import load_components
from gateway.config import load_config
from gateway.loss_matrix import agent_grid, pair_losses, support_grid
from mappings.language import FEATURES
from tests.support.gateway_server import PLAIN, serving


def settings(folder: Path, **more: object) -> Path:
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({**PLAIN, **more}))
    return file


async def a_turn(served, text: str = "hello", **body: object) -> str:
    async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as response:
        session = (await response.json())["sessionId"]
    turn = {"messages": [{"role": "user", "content": text}], "stream": "delta", **body}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as response:
        await response.read()
    return session


async def test_who_looks_in_is_told_what_is_where(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.http.get(served.url("/")) as response:
        assert (response.status, response.content_type) == (200, "text/plain")
        places = dict(line.split() for line in (await response.text()).splitlines()[1:])
        assert places["aap"] == "/aap"
        for place in ("health", "readiness", "metrics"):
            async with served.http.get(served.url(places[place])) as answer:
                assert answer.status == 200


async def test_outside_every_mount_a_refusal_is_in_our_own_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        async with served.http.get(served.url("/nowhere")) as response:
            assert response.status == 404
            assert await response.json() == {"error": {"code": "not_found", "message": "there is nothing at /nowhere"}}
        async with served.http.get(served.url("/aap/nowhere")) as response:
            assert await response.json() == {"error": "there is nothing at /aap/nowhere"}
        async with served.http.get(served.url("/aapx")) as response:
            assert (await response.json())["error"]["code"] == "not_found"


async def test_a_mount_is_a_setting(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects={"aap": {"mount": "/agents/v3/"}}) as served:
        async with served.http.get(served.url("/agents/v3/meta")) as response:
            assert response.status == 200
        async with served.http.get(served.url("/agents/v3/nothing")) as response:
            assert list(await response.json()) == ["error"]


async def test_health_and_metrics(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await a_turn(served, "/title Trip")
        async with served.http.get(served.url("/healthz")) as response:
            assert response.status == 200
        async with served.http.get(served.url("/readyz")) as response:
            assert response.status == 200
        async with served.http.get(served.url("/metrics")) as response:
            page = await response.text()
        assert "dragoman_sessions 1.0" in page
        assert "dragoman_running_turns 0.0" in page
        assert "dragoman_subscribers 0.0" in page
        assert 'dragoman_turns_total{outcome="completed"} 1.0' in page
        assert 'dragoman_translation_loss_total{feature="titles",from="demo",to="aap"} 1.0' in page
        assert 'dragoman_events_total{dialect="aap"}' in page
        assert "dragoman_loop_lag_seconds" in page


async def test_with_keys_only_health_is_public(tmp_path: Path) -> None:
    async with serving(tmp_path, auth="keys") as served:
        for path, status in [("/healthz", 200), ("/readyz", 200), ("/metrics", 401), ("/replay/sess_x", 401)]:
            async with served.http.get(served.url(path)) as response:
                assert response.status == status, path


async def test_replay_gives_the_records_of_a_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        session = await a_turn(served)
        async with served.http.get(served.url(f"/replay/{session}")) as response:
            records = [orjson.loads(line) for line in (await response.read()).splitlines()]
        assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
        assert records[0]["event"]["type"] == "session.created"
        assert records[-1]["event"]["type"] == "turn.ended"
        async with served.http.get(served.url("/replay/sess_none")) as response:
            assert response.status == 404


async def test_new_settings_are_taken_while_it_runs(tmp_path: Path) -> None:
    over = tmp_path / "over.yaml"
    async with serving(tmp_path) as served:
        session = await a_turn(served)
        over.write_text("frames:\n  turn.started: [ turn_begin: {} ]\n")
        file = settings(tmp_path, mappings={"aap": "over.yaml"}, limits={"turn_seconds": 5},
                        agents={"demo": {"backend": "demo", "title": "Anew"}})
        served.gateway.replace_components(load_components(load_config(file), served.gateway.components))
        turn = {"messages": [{"role": "user", "content": "hi"}], "stream": "delta"}
        async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=turn) as response:
            assert b"event: turn_begin\n" in await response.read()
        async with served.http.get(served.url("/aap/meta")) as response:
            assert (await response.json())["agents"][0]["title"] == "Anew"
        assert served.gateway.runtime.limits.turn_seconds == 5


def test_check_says_what_is_in_order(tmp_path: Path) -> None:
    lines = describe_components(load_config(settings(tmp_path)))
    assert any(line.startswith("dialect aap: /aap") for line in lines)
    assert any(line.startswith("agent demo: demo, 4 tools, 3 options") for line in lines)
    assert (
        describe_components(load_config(settings(tmp_path, shadow={"backend": "demo"})))[-1] == "shadow of demo: demo"
    )


def test_counts_are_in_the_singular_where_there_is_one(tmp_path: Path) -> None:
    agent = {"backend": "demo", "tools": [{"name": "clock"}], "options": [{"name": "colour"}]}
    assert (
        describe_components(load_config(settings(tmp_path, agents={"demo": agent})))[-1]
        == "agent demo: demo, 1 tool, 1 option"
    )


def test_the_grid_marks_every_feature_of_every_dialect(tmp_path: Path) -> None:
    found = support_grid(load_config(settings(tmp_path)))
    head, *rows = found.rows
    assert head == ["feature", "aap", "cas"]
    marks = {feature: cells for feature, *cells in rows}
    assert set(marks) == set(FEATURES)
    assert marks["text"] == ["✓", "✓"]
    assert marks["subagents"] == ["✗", "✓"]
    aap, cas = marks["questions"]
    assert found.notes[int(aap.removeprefix("~")) - 1].startswith("aap questions: a tool call; ")
    assert found.notes[int(cas.removeprefix("~")) - 1].startswith("cas questions: a custom tool use ")
    numbers = [int(cell[1:]) for cells in marks.values() for cell in cells if cell.startswith("~")]
    assert numbers == list(range(1, len(found.notes) + 1)), "in the order of reading, each with its note"


def test_the_grid_of_agents_says_what_reaches_them(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def run(self, turn): ...\n    def close(self): ...\n")
    found = agent_grid(load_config(settings(tmp_path, agents={
        "demo": {"backend": "demo"}, "page": {"backend": "agui", "settings": {"url": "http://127.0.0.1:1/"}},
        "far": {"backend": "remote", "settings": {"dialect": "blade", "url": "http://127.0.0.1:1/"}},
        "mine": {"backend": "mine:Mine"},
    })))
    head, *rows = found.rows
    assert [head, *sorted(rows)] == [
        ["what agents get", "skills", "mcp_servers", "memories", "user_settings"],
        ["agent demo", "✗", "✗", "✗", "✓"], ["agent far", "✗", "✗", "✗", "✓"],
        ["agent mine", "?", "?", "?", "?"], ["agent page", "~1", "~2", "✓", "~3"],
    ]
    assert found.notes[1] == "agent page mcp_servers: their tools, which the gateway runs"


def test_the_pairs_name_what_is_lost(tmp_path: Path) -> None:
    head, *rows = pair_losses(load_config(settings(tmp_path)))
    assert head == ["agent", "client", "lost", "degraded"]
    assert [row[:2] for row in rows] == [["aap", "aap"], ["aap", "cas"], ["cas", "aap"], ["cas", "cas"]]
    lost = {(first, second): words.split(", ") for first, second, words, _ in rows}
    lesser = {(first, second): words.split(", ") for first, second, _, words in rows}
    assert "usage" in lost["cas", "aap"], "CAS tells what was spent, and AAP has no word for it"
    assert "questions" in lesser["cas", "cas"], "our client knows a question by its call; others may not"
    assert "text" not in lost["aap", "cas"] + lesser["aap", "cas"]


@pytest.mark.parametrize("directive", ["/annotate", "/plan", "/fork", "/compact"])
async def test_losses_are_counted_only_where_the_table_declares_them(tmp_path: Path, directive: str) -> None:
    async with serving(tmp_path) as served:
        await a_turn(served, directive)
        counted = {
            sample.labels["feature"] for metric in served.gateway.metrics.registry.collect()
            for sample in metric.samples if sample.name == "dragoman_translation_loss_total"
        }
        declared = {feature for feature, level in served.gateway.components.tables["aap"].support.items()
                    if level in ("dropped", "rejected")}
        assert counted
        assert counted <= declared
