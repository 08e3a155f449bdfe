"""Reproducing: the commands made from a transcript are sound shell, and run against a server they do what was done."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from conformance.faults.aap.server import AapServer
from conformance.faults.fault import load_faults
from conformance.kit.http import HttpClient
from conformance.kit.reproduction_steps import steps
from conformance.kit.secrets import Redactor
from conformance.kit.suite import Suite, Target
from conformance.kit.transcript import Transcript
from conformance.kit.verdict import Outcome, Report

KEY = "the-key-of-the-examiners"
Examine = Callable[..., Awaitable[Report]]
Serve = Callable[[AapServer], str]


def told(*entries: tuple[str, str]) -> str:
    transcript = Transcript(Redactor(key=KEY), clock=lambda: 0.0)
    for mark, text in entries:
        {">": transcript.sent, "<": transcript.received, "*": transcript.remark}[mark](text)
    return str(transcript)


def test_one_request_is_one_command_with_the_key_as_a_variable() -> None:
    transcript = told((">", f"GET /meta\nAuthorization: Bearer {KEY}"), ("<", "200 OK\n"), ("*", "clearing away"))
    [command] = steps(transcript, "http://h/aap/")
    assert command == """curl -sS -N 'http://h/aap/meta' -H 'Authorization: Bearer '"$KEY\""""


def test_what_is_cleared_away_is_not_part_of_it() -> None:
    transcript = told((">", "GET /a"), ("<", "200 OK\n"), ("*", "clearing away"), (">", "DELETE /a"))
    assert steps(transcript, "http://h") == ["curl -sS -N 'http://h/a'"]


def test_an_id_the_server_made_is_read_out_of_its_answer() -> None:
    transcript = told(
        (">", 'POST /sessions\nContent-Type: application/json\n\n{"agent":"it\'s"}'),
        ("<", "201 Created\nServer: x\n"),
        ("<", '{"note": "sessionId", "sessionId": "s-123456"}'),
        (">", "GET /sessions/s-123456"),
    )
    first, second = steps(transcript, "http://h")
    assert first.startswith("ID1=$(curl -sS -N -X POST 'http://h/sessions'")
    assert """--data-binary '{"agent":"it'\\''s"}'""" in first
    assert second == """curl -sS -N 'http://h/sessions/'"$ID1\""""


def test_frames_on_a_socket_are_piped_into_it() -> None:
    transcript = told((">", "WebSocket /api/v1/ws/chat"), ("<", "101"), (">", '{"type":"ping"}'), (">", "second"))
    [command] = steps(transcript, "http://h")
    assert command == """printf '%s\\n' '{"type":"ping"}' 'second' | websocat 'ws://h/api/v1/ws/chat'"""


def test_packets_of_socket_io_are_frames_after_the_session_they_name() -> None:
    transcript = told(
        (">", "2probe"), (">", "40{}"), (">", "POST /api/sessions\n\n{}"), ("<", '{"session_id":"sess_123456"}'),
        (">", '42["chat:send",{"session_id":"sess_123456"}]'), (">", "3"),
    )  # fmt: skip
    first, second = steps(transcript, "http://h")
    assert first.startswith("ID1=$(")
    assert second.startswith("printf '%s\\n' '40{}' '42[\"chat:send\",{\"session_id\":\"'\"$ID1\"")
    assert second.endswith("| websocat 'ws://h/socket.io/?EIO=4&transport=websocket'")
    assert "'3'" not in second


def test_a_body_that_was_too_long_to_keep_is_not_made_up() -> None:
    transcript = told((">", "POST /a\n\n" + "x" * 20_000))
    assert steps(transcript, "http://h")[0].endswith("--data-binary @body   # too long to show")


async def _everything(suite: Suite, url: str) -> str:
    transcript = Transcript(Redactor(key=KEY))
    async with suite.examination(Target(url, KEY, 5.0), suite.read_profile(), transcript) as exam:
        http: HttpClient = exam.http
        made = (await http.ask("POST", "/sessions", {"agent": {"name": "able"}})).json()["sessionId"]
        messages: list[dict[str, Any]] = [{"role": "user", "content": "it's $HOME `so`"}]
        await http.ask("POST", f"/sessions/{made}/turns", {"messages": messages})
        await http.ask("GET", f"/sessions/{made}/history", query={"type": "full"})
    return str(transcript)


def test_the_commands_run_and_find_their_own_ids(in_background: Serve, aap: Suite, tmp_path: Path) -> None:
    url = in_background(AapServer(key=KEY))
    script = "\n".join(steps(asyncio.run(_everything(aap, url)), url))
    assert KEY not in script
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=120,
                          env={"KEY": KEY, "PATH": "/usr/bin:/bin", "HOME": "/nowhere"}, check=True)  # fmt: skip
    assert "it's $HOME `so`" in done.stdout
    assert '"full"' in done.stdout


async def _is_sound(script: str) -> bool:
    """Whether bash can read it."""
    process = await asyncio.create_subprocess_exec("bash", "-n", "-c", script)
    return await asyncio.wait_for(process.wait(), 60) == 0


async def test_every_failure_can_be_reproduced(examine: Examine) -> None:
    wrong = load_faults("aap")["trust-ignored"].server(key=KEY)
    report = await examine(wrong)
    failed = [result for result in report.results if result.outcome is Outcome.FAILED]
    assert len(failed) > 1
    for result in failed:
        commands = steps(result.transcript, report.url)
        assert commands and KEY not in "".join(commands)
        assert await _is_sound("\n".join(commands))


def test_a_failure_without_traffic_has_no_commands() -> None:
    assert steps("", "http://h") == []
