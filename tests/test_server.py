"""The process: it greets with lines that work, reloads on SIGHUP, and ends well."""

import re
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support import fork_server
from tests.support.fork_server import for_shells
from tests.support.gateway_server import PLAIN
from tests.support.server_process import PROGRAM, running


def curl(address: str, *words: str) -> str:
    command = ["curl", "-s", *words, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def test_the_lines_it_greets_with_work_when_pasted(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        assert any(str(tmp_path / "data") in line for line in server.greeting)
        lines = [line.strip() for line in server.greeting if "curl" in line]
        assert len(lines) == 3
        done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300, check=True)
        assert '"version":3' in done.stdout
        assert "".join(re.findall(r'"delta":"([^"]*)"', done.stdout)) == "You said: hello"
        assert re.search(r"^sess_\w+$", done.stdout, re.MULTILINE)
        assert done.stdout.rstrip().endswith('data: {"stopReason":"end_turn"}')
        [chat] = [line.strip() for line in server.greeting if " chat " in line]
        assert chat.startswith("dragoman ")
        command = chat.replace("dragoman", f"{for_shells()} -m gateway", 1)
        said = subprocess.run(["bash", "-c", f"echo hello | {command}"], capture_output=True, text=True, timeout=300)
        assert (said.returncode, said.stdout) == (0, "You said: hello\n"), said.stderr
        assert server.end() == 0


def test_where_a_key_is_needed_and_there_is_none_that_is_told(tmp_path: Path) -> None:
    with running(tmp_path, auth="keys") as server:
        [place] = [number for number, line in enumerate(server.greeting) if line.startswith("There are no keys yet")]
        command = server.greeting[place + 1].strip()
        assert command == f"dragoman keys add NAME --data {tmp_path / 'data'}"
        words = command.replace("dragoman", f"{for_shells()} -m gateway", 1)
        made = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=300, check=True)
        key, chat = made.stdout.strip(), next(line.strip() for line in server.greeting if " chat " in line)
        words = chat.replace("dragoman", f"{for_shells()} -m gateway", 1)
        said = subprocess.run(["bash", "-c", f"KEY={key}; echo hello | {words}"], capture_output=True, text=True,
                              timeout=60)
        assert (said.returncode, said.stdout) == (0, "You said: hello\n"), said.stderr
        assert server.end() == 0
    with running(tmp_path, auth="keys") as server:
        assert not any("no keys" in line for line in server.greeting)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_zero_in_the_middle_of_a_turn(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, limits={"drain_seconds": 0.1}) as server:
        session = re.search(r"sess_\w+", subprocess.run(
            ["curl", "-s", f"{server.address}/aap/sessions", "-d", '{"agent":{"name":"demo"}}'],
            capture_output=True, text=True, timeout=300, check=True).stdout)
        assert session
        body = '{"stream":"delta","messages":[{"role":"user","content":"/slow 10000"}]}'
        stream = subprocess.Popen(
            ["curl", "-sN", f"{server.address}/aap/sessions/{session[0]}/turns", "-d", body],
            stdout=subprocess.PIPE, text=True)
        assert stream.stdout is not None
        assert stream.stdout.readline().startswith(":")
        assert server.end(number) == 0
        rest = stream.stdout.read()
        stream.wait(300)
        stream.stdout.close()
        assert rest.rstrip().endswith('data: {"stopReason":"error"}'), "the stream was ended, not torn"


def test_it_reads_its_settings_again_on_hangup_and_if_an_admin_asks_for_it(tmp_path: Path) -> None:
    with running(tmp_path, dialects={"aap": {}, "zenflux": {}}) as server:
        file = tmp_path / "config.yaml"
        good = yaml.safe_load(file.read_text())
        good["agents"]["demo"]["title"] = "Anew"

        def hang_up(text: str, told: str) -> str:
            file.write_text(text)
            server.process.send_signal(signal.SIGHUP)
            return server.until_told(told)

        hang_up(yaml.safe_dump(good), '"reloaded"')
        assert '"title":"Anew"' in curl(f"{server.address}/aap/meta")
        told = hang_up("dialects: {aap: }\nagents: {demo: {backend: demmo}}\n", "there is no backend")
        assert "reload_failed" in told
        assert '"title":"Anew"' in curl(f"{server.address}/aap/meta"), "what was in force stays so"
        good["agents"]["demo"]["title"] = "Once more"
        file.write_text(yaml.safe_dump(good))
        said = curl(f"{server.address}/api/v1/agents/reload", "-X", "POST")
        assert '"reloaded":["demo"]' in said
        assert '"title":"Once more"' in curl(f"{server.address}/aap/meta")
        good["host"] = "127.0.0.2"
        hang_up(yaml.safe_dump(good), "'host' cannot change while the server runs")
        assert server.end() == 0


def test_a_wrong_table_is_exit_code_two_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "over.yaml").write_text("frames:\n  turn.startd: []\n  nope: []\n")
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**PLAIN, "port": 0, "mappings": {"aap": "over.yaml"}}))
    done = fork_server.run([*PROGRAM, "serve", "--config", str(file)])
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"{tmp_path}/over.yaml:2:3: nobody raises a cue 'turn.startd'; did you mean 'turn.started'?",
        f"{tmp_path}/over.yaml:3:3: nobody raises a cue 'nope'",
    ]
