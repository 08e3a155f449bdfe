"""`dragoman translate` is a filter: what it understands it writes at once, what is lost it tells at the end."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import gateway.model as m
from gateway.cli import app
from tests.cli.conftest import program
from tests.support import fork_server
from tests.support.dialect_parts import dialects_with, part
from tests.support.dialect_tables import DIALECTS

Run = Callable[..., Result]
BEGINNING = b"event: turn_start\ndata: {}\n\nevent: text_delta\ndata: {\"delta\": \"hello \"}\n\n"
REST = b"""event: tool_call
data: {"toolCallId": "call_1", "name": "calc", "input": {"expression": "6*7"}}

event: tool_result
data: {"toolCallId": "call_1", "content": "42"}

event: text_delta
data: {"delta": "well"}

event: turn_stop
data: {"stopReason": "end_turn"}

"""
SESSION = b"""{"format":"dragoman log","model":1}
{"seq":1,"at":1.0,"session_id":"s","event":{"type":"session.created","agent":"demo"}}
{"seq":2,"at":1.0,"session_id":"s","event":{"type":"notice.posted","topic":"t","title":"hear, hear"}}
{"seq":3,"at":1.0,"session_id":"s","event":{"type":"turn.started","command_id":"c"},"turn_id":"t"}
{"seq":4,"at":1.0,"session_id":"s","event":{"type":"turn.ended","outcome":"completed","stop_reason":"end_turn"},"turn_id":"t"}
"""


def translate(*words: str, stream: bytes = BEGINNING + REST) -> Result:
    return CliRunner().invoke(app, ["translate", *words], input=stream)


@pytest.fixture
def started() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """A filter in a pipe; it does not outlive the test."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        command = program("translate", *words)
        running.append(fork_server.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate(timeout=300)


def read_until(process: "subprocess.Popen[bytes]", text: bytes) -> bytes:
    """Read what the filter writes until this is in it; the test's own limit ends the waiting."""
    assert process.stdout is not None
    said = b""
    while text not in said:
        chunk = os.read(process.stdout.fileno(), 65536)
        assert chunk, said
        said += chunk
    return said


@pytest.mark.parametrize(("target", "first"), [
    ("canonical", b'"delta":"hello "'),
    *((name, part(name, "translation").FIRST_WORDS) for name in dialects_with("translation")),
])
def test_words_are_passed_on_before_the_rest_has_come(
    started: Callable[..., "subprocess.Popen[bytes]"], target: str, first: bytes,
) -> None:
    process = started("--from", "aap", "--to", target)
    assert process.stdin is not None
    process.stdin.write(BEGINNING)
    said = read_until(process, first)
    out, told = process.communicate(REST, timeout=300)
    assert process.returncode == 0, told
    assert b"well" in said + out


def test_a_question_is_passed_on_while_nothing_follows(started: Callable[..., "subprocess.Popen[bytes]"]) -> None:
    process = started("--from", "zenflux", "--to", "aap", "-q")
    assert process.stdin is not None
    ask = b'{"type":"event","event":"long_running_confirm","payload":{"type":"long_running_confirm","session_id":"r",' \
          b'"conversation_id":"c","data":{"turn":3,"message":"go on?"}},"seq":1}\n'
    process.stdin.write(ask)
    assert b"confirm_continue" in read_until(process, b'"stopReason":"tool_use"')
    assert process.communicate(timeout=300)[1] == b""


def test_files_in_and_out(home: Path) -> None:
    (home / "in.sse").write_bytes(BEGINNING + REST)
    done = translate("--from", "aap", "--to", "canonical", "in.sse", "-o", "out.jsonl")
    assert (done.exit_code, done.stdout) == (0, "")
    records = [m.decode_record(line) for line in (home / "out.jsonl").read_bytes().splitlines()[1:]]
    assert [record.event.name for record in records[:3]] == ["session.created", "turn.started", "message.started"]
    again = translate("--from", "aap", "--to", "cas", "in.sse", "-o", "out.jsonl")
    assert (again.exit_code, again.stderr) == (2, "out.jsonl exists already; remove it, or choose another name\n")
    nowhere = translate("--from", "aap", "--to", "cas", "in.sse", "-o", "no/where")
    assert (nowhere.exit_code, nowhere.stderr) == (2, "no/where cannot be written: No such file or directory\n")
    missing = translate("--from", "aap", "--to", "cas", "missing")
    assert (missing.exit_code, missing.stderr) == (2, "missing cannot be read: No such file or directory\n")


def test_what_is_written_can_be_taken_into_a_log(home: Path) -> None:
    assert translate("--from", "aap", "--to", "canonical", "-o", "out.jsonl").exit_code == 0
    taken = CliRunner().invoke(app, ["log", "import", "out.jsonl"])
    assert "imported 1 session" in taken.stdout, taken.output
    back = CliRunner().invoke(app, ["log", "export"])
    assert back.stdout_bytes == (home / "out.jsonl").read_bytes()


def test_what_was_lost_is_told_and_counted() -> None:
    done = translate("--from", "canonical", "--to", "aap", stream=SESSION)
    assert (done.exit_code, done.stderr) == (0, "1 × notices: dropped\n")
    strict = translate("--from", "canonical", "--to", "aap", "--strict", stream=SESSION)
    assert (strict.exit_code, strict.stderr) == (3, "1 × notices: dropped\n")
    quiet = translate("--from", "canonical", "--to", "aap", "--strict", "--quiet", stream=SESSION)
    assert (quiet.exit_code, quiet.stderr, quiet.stdout) == (3, "", done.stdout)
    whole = translate("--from", "canonical", "--to", "blade", "--strict", stream=SESSION)
    assert (whole.exit_code, whole.stderr) == (0, "")


def test_what_was_torn_is_told() -> None:
    done = translate("--from", "aap", "--to", "cas", stream=BEGINNING)
    assert done.exit_code == 0
    assert done.stderr.startswith("the recording ends in the middle of a turn; what was open is closed\n")
    assert "session.status_idle" in done.stdout


def test_what_cannot_be_read_is_told_with_its_line_and_the_rest_is_written() -> None:
    done = translate("--from", "aap", "--to", "zenflux", stream=BEGINNING + b"event: text_delta\ndata: {oops\n\n")
    assert done.exit_code == 2
    assert done.stderr == "line 9: the data of the event 'text_delta' is not JSON\n"
    assert "hello" in done.stdout
    assert '"event":"session_end"' in done.stdout, "what was open is closed all the same"


@pytest.mark.parametrize(("words", "stream", "told"), [
    (["--from", "cas"], BEGINNING + REST, "no frame of the recording was understood; is it cas?"),
    (["--from", "aap"], b"event: turn_st", "no frame of the recording was understood; is it aap?"),
    (["--from", "canonical", "--session", "else"], SESSION, "the recording has no frames of session 'else'"),
])
def test_who_understands_nothing_says_so(words: list[str], stream: bytes, told: str) -> None:
    for quiet in ([], ["--quiet"]):
        done = translate(*words, "--to", "blade", *quiet, stream=stream)
        assert done.exit_code == 2
        assert done.stderr.rstrip().endswith(told)


def test_nothing_at_all_is_no_mistake() -> None:
    done = translate("--from", "aap", "--to", "cas", stream=b"")
    assert (done.exit_code, done.stdout) == (0, "")


def test_one_session_of_many() -> None:
    other = SESSION.splitlines(keepends=True)[1].replace(b'"s"', b'"other"')
    done = translate("--from", "canonical", "--to", "canonical", "--session", "s", stream=SESSION + other)
    assert {record.session_id for record in records_of(done)} == {"s"}


def records_of(done: Result) -> list[m.Record]:
    return [m.decode_record(line) for line in done.stdout_bytes.splitlines()[1:]]


@pytest.mark.parametrize(("words", "told"), [
    (["--from", "nova", "--to", "aap"],
     f"there is no dialect 'nova' to translate from; there are: {', '.join(DIALECTS)}, canonical\n"),
    (["--from", "aap", "--to", "nova"],
     f"there is no dialect 'nova' to translate to; there are: {', '.join(DIALECTS)}, canonical\n"),
])
def test_a_dialect_that_is_not_there_is_told(words: list[str], told: str) -> None:
    done = translate(*words)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", told)


def test_whoever_has_had_enough_is_let_go(started: Callable[..., "subprocess.Popen[bytes]"], home: Path) -> None:
    process = started("--from", "canonical", "--to", "canonical", "-q", str(_many(home)))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(300) == 0
    assert process.stderr.read() == b""


def _many(home: Path) -> Path:
    """So much that a pipe cannot hold it."""
    line = SESSION.splitlines(keepends=True)[2]
    many = [line.replace(b'"seq":2', b'"seq":%d' % seq) for seq in range(2, 5000)]
    (home / "many").write_bytes(b"".join([*SESSION.splitlines(keepends=True)[:2], *many]))
    return home / "many"


def test_help_has_an_example(dragoman: Run) -> None:
    result = dragoman("translate", "--help")
    assert result.exit_code == 0
    assert "Example: dragoman translate" in result.stdout
