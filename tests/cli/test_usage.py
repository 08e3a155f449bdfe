"""`dragoman usage` and `dragoman migrate plan` say who speaks what, and what a move costs them."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.usage import feature_of_fact
from mappings.language import FEATURES
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, reachable_from_outside, serving, until
from tests.usage.test_usage import talk

DIALECTS = {name: {} for name in ALL_DIALECTS}


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


async def old_client(served: Served, message: str) -> None:
    body = {"message": message, "userId": "local", "stream": False}
    headers = {"User-Agent": "oldapp/1.4"}
    async with served.http.post(served.url("/api/v1/chat"), json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()
    async with served.http.get(served.url("/api/v1/docs/structure"), headers=headers) as answer:
        await answer.read()


async def test_the_usage_of_a_data_folder_and_of_a_server(tmp_path: Path) -> None:
    config = str(tmp_path / "config.yaml")
    async with serving(tmp_path, log="sqlite", dialects=DIALECTS) as served:
        await talk(served, "/think hello")
        async with reachable_from_outside(served) as address:
            code, shown = await asyncio.to_thread(run, "usage", address, "--since", "9999d", "--config", config)
            assert code == 0, shown
    code, stored = run("usage", "--since", "9999d", "--config", config)
    assert code == 0
    assert stored == shown
    head, line = stored.splitlines()
    assert head.split() == ["dialect", "key", "client", "requests", "last", "seen", "features"]
    assert line.startswith("aap      -    desk/2.1         2  ")
    assert "thinking" in line
    code, told = run("usage", "--since", "9999d", "--json", "--config", config)
    [client] = msgspec.json.decode(told)
    assert client["endpoints"] == {"POST /aap/sessions": 1, "POST /aap/sessions/{id}/turns": 1}


async def test_a_plan_is_a_checklist_of_the_clients_that_still_speak_the_old_dialect(tmp_path: Path) -> None:
    config = str(tmp_path / "config.yaml")
    async with serving(tmp_path, log="sqlite", dialects=DIALECTS) as served:
        await old_client(served, "/think /title Trip")
        await talk(served, "hello")
    words = ("migrate", "plan", "--from", "zenflux", "--to", "aap", "--since", "9999d", "--config", config)
    code, told = run(*words, "--quiet-days", "99999")
    assert code == 1, told
    lines = [line.strip() for line in told.splitlines()]
    assert lines[2].startswith("[ ] oldapp/1.4, key -: 2 requests, the last")
    assert any(line.startswith("✓ arrives as before:") and "thinking" in line for line in lines)
    assert any(line.startswith("✗ lost: titles (1 ×)") for line in lines)
    assert lines[-1] == "1 of 1 clients still speak zenflux."
    assert "desk/2.1" not in told
    code, told = run(*words)
    assert code == 0, "the clock of the test stands in the past, so the client was not seen for a week"
    assert "[x] oldapp/1.4" in told
    assert told.endswith("take it out of `dialects`.\n")


@pytest.mark.parametrize(("words", "error"), [
    (("usage", "--since", "week"), "--since: must be a number of days, hours or minutes such as 7d"),
    (("migrate", "plan", "--from", "casx", "--to", "aap"), "there is no dialect 'casx'; did you mean 'cas'?"),
    (("migrate", "plan", "--from", "cas", "--to", "cas"), "--from and --to are both cas"),
])
def test_mistakes(words: tuple[str, ...], error: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = run(*words)
    assert code == 2
    assert error in told


async def test_a_shadow_report_says_who_would_notice(tmp_path: Path) -> None:
    config = str(tmp_path / "config.yaml")
    shadow = {"backend": "scripted", "settings": {"scenario": "other.yaml"}}
    (tmp_path / "other.yaml").write_text("turns: [[{say: only words}]]\n")
    async with serving(tmp_path, log="sqlite", dialects={"aap": {}}, shadow=shadow) as served:
        await talk(served, "/think hello", "thinker/1")
        report = tmp_path / "data" / "shadow.jsonl"
        await until(lambda: report.exists() and report.read_bytes().count(b"\n") == 1)
        await talk(served, "hello", "plain/1")
        await until(lambda: report.read_bytes().count(b"\n") == 2)
    code, told = run("migrate", "shadow", "--since", "9999d", "--config", config)
    assert code == 1, told
    assert told.splitlines() == [
        "1 turn of demo: thinking → nothing", "    noticed by thinker/1 (aap, key -)"]
    report.write_text("")
    assert run("migrate", "shadow", "--since", "9999d", "--config", config) == (0, "The report has no differences.\n")


def test_every_fact_of_a_turn_belongs_to_a_feature() -> None:
    facts = {
        "call calc(expression)": "tool_calls", "result of calc: ok": "tool_results",
        "asked: permission calc": "permissions",
        "asked: question (2)": "questions", "sub-agent opened": "subagents", "sub-agent: text": "subagents",
        "data: plan": "data_blocks", "text": "text", "ended: refusal": "stop_reasons", "failed: backend": "faults",
        "compacted": "compaction", "image": "images_out", "torn call": "tool_calls",
    }
    assert {fact: feature_of_fact(fact) for fact in facts} == facts
    assert set(facts.values()) <= set(FEATURES)
