"""A small thing of everything that runs over dialects, done with the fifth.

`tests/prove/fifth_dialect/test_fifth_dialect.py` runs this file, with the folder of the fifth dialect on the path.
"""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from typer.testing import CliRunner

from adapters import known_dialects
from bench.dialects import find_visits, unvisited
from bench.soak_clients import SoakClients, SoakCounts
from conformance.faults.kill.setups import SETUPS
from conformance.faults.kill.workers import RunOptions, run_here
from conformance.kit.suite import dialects
from gateway.cli import app
from gateway.server import startup_lines
from tests.golden import recorder
from tests.prove.crash import full_disk, kill_runs
from tests.prove.crash.clients import client_types
from tests.prove.hops.counts import measure
from tests.prove.hops.turns import TURNS
from tests.storage.log.test_crashes import Server
from tests.support.conformance.wrong_servers import FAULTS, assert_caught
from tests.support.dialect_parts import dialects_with
from tests.support.dialect_tables import ALL_DIALECTS, DIALECTS
from tests.support.doc_tables import support_table
from tests.support.gateway_server import serving
from tests.support.pairs.pair import Pair, declared, pair_client
from tests.support.pairs.two_gateways import gateway_chain
from tests.support.translate.conversations import translated
from tests.support.translate.recordings import recorded

NAME = "quill"
OTHERS = [name for name in DIALECTS if name != NAME]


def test_all_registries_have_it() -> None:
    assert NAME in known_dialects() and NAME in dialects() and NAME in SETUPS and NAME in TURNS and NAME in FAULTS
    parts = ("pair_client", "crash_client", "disk_client", "hop_client", "rest_requests", "watched_frames",
             "examination", "translation")
    assert {name for name in parts if NAME not in dialects_with(name)} == set()
    assert len(OTHERS) == 4


async def test_the_gateway_serves_it(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects=ALL_DIALECTS, log="memory") as served:
        assert (await pair_client(NAME, served).converse("hello there")).texts == ["You ", "said: ", "hello ", "there"]
        assert any(f"  {NAME} " in line for line in startup_lines(served.gateway, served.address))


def test_the_commands_list_it(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"dialects: {{{NAME}: , {OTHERS[0]}: }}\nagents: {{demo: {{backend: demo}}}}\n")
    checked = CliRunner().invoke(app, ["check", "--matrix", "--config", str(file)])
    assert checked.exit_code == 0, checked.output
    assert f"dialect {NAME}: /{NAME}" in checked.output
    assert [line.split() for line in checked.output.splitlines() if line.startswith("feature ")] == [
        ["feature", NAME, OTHERS[0]]]
    refused = CliRunner().invoke(app, ["translate", "--from", "klingon", "--to", NAME])
    assert f"there are: {', '.join(known_dialects())}, canonical" in refused.output
    assert CliRunner().invoke(app, ["conform", NAME, "--print-profile"]).exit_code == 0


def test_the_table_of_the_documentation_has_a_column_for_it() -> None:
    head, _, text, *_ = support_table().splitlines()
    assert head == f"| feature | {' | '.join(DIALECTS)} |"
    assert text == f"| `text` | {' | '.join(['full'] * len(DIALECTS))} |"


@pytest.mark.parametrize(("first", "second"), [(NAME, NAME), (NAME, OTHERS[0]), (OTHERS[0], NAME)])
async def test_pairs(tmp_path: Path, first: str, second: str) -> None:
    async with gateway_chain(tmp_path, first) as row:
        pair = Pair(row, first, second)
        for number, text in enumerate(("hello there", "/think why", "/tool clock")):
            await pair._try(asyncio.Semaphore(), number, text)
    assert pair.wrong == []
    assert set(pair.found) <= declared(pair.first, pair.second), pair.found
    assert {"thinking", "tool_calls"} <= set(pair.found)


async def test_golden_transcripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "directives", lambda burst: ["hello there"])
    found = await recorder.golden(tmp_path, NAME)
    assert list(found) == [f"{NAME}.{kind}.txt" for kind in ("conversations", "decoded", "requests")]
    said, decoded, asked = found.values()
    assert 'event: words\n  data: {"text":"You "}' in said
    assert '"delta":"You "' in decoded
    assert "POST /quill/talks/nobody/lines\n" in asked


async def test_crash_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [kind for kind in client_types() if kind.dialect == NAME]
    monkeypatch.setattr(kill_runs, "client_types", lambda: mine)
    served = Server(tmp_path)
    await served.begin()
    report = await kill_runs.judge_run(served, 2, seed=7, each=1, thinking=0.1)
    await served.close()
    assert report.violations == [], str(report)
    assert report.things > 10, str(report)


async def test_full_disks(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects=ALL_DIALECTS, log="memory") as served, aiohttp.ClientSession() as http:
        talk = full_disk.talker(NAME, http, served.address)
        await talk.create()
        assert (await talk.say("hello"))[0] == 200
        assert (await talk.call("GET", talk.reads.format(talk.session)))[0] == 200


@pytest.mark.parametrize("name", FAULTS[NAME])
async def test_faults(name: str) -> None:
    await assert_caught(NAME, name, by_all=True)


async def test_the_kill_matrix() -> None:
    (matrix,) = await run_here(RunOptions((NAME,)))
    assert matrix.complaints() == []
    assert len(matrix.broken) > 10


async def test_the_soak(tmp_path: Path) -> None:
    assert unvisited() == []
    async with serving(tmp_path, dialects=ALL_DIALECTS, log="memory") as served:
        clients = SoakClients(served.address, served.http, SoakCounts())
        await find_visits()[NAME].pay(clients)
    assert clients.tally.by_dialect == {NAME: 5}


def test_counted_turns() -> None:
    assert measure(NAME).counts.per_delta > 0


async def test_translations(tmp_path: Path) -> None:
    async with serving(tmp_path, dialects=ALL_DIALECTS) as served:
        recording = await recorded(served, NAME, "hello there")
    for target in OTHERS:
        stream, translation, _ = translated(recording, NAME, target)
        assert b"You" in stream
        assert [*translation.remarks.lines()] == []
        back, _, _ = translated(stream, target, NAME)
        assert b"event: words\n" in back and b"You" in back
