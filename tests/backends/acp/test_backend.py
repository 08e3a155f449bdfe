"""An ACP agent as a real child process: prompts, permissions, files, cancelling, dying and coming back."""

import asyncio
import json
import os
import select
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import structlog

import gateway.model as m
from gateway.backends.acp import AcpBackend
from gateway.client import events_of
from gateway.errors import BackendFailed, Interrupted, Overloaded, TimedOut, Unsupported
from tests.support.backends.acp_turns import Turn, backend, call, played, printed, progress, text
from tests.support.backends.turn_driver import record_all
from tests.support.gateway_server import until

LOOK = {"toolCallId": "c1", "title": "List files", "kind": "execute", "rawInput": {"command": "ls"}}


async def test_a_prompt_is_a_turn(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = await played(
            made, text("hm", kind="agent_thought_chunk"), text("Hel"), text("lo"),
            call("c1", status="pending"), progress("c1", rawInput={"path": "a"}, status="in_progress"),
            progress("c1", status="completed", content=printed("found")), text("Done."),
            ["stop", "max_tokens", {"usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}}],
        )
    assert turn.text == "HelloDone."
    assert turn.results == ["found"]
    assert turn.stops == ["tool_use", "max_tokens"]
    assert (turn.view.entries[-1].usage or 0) and turn.view.entries[-1].usage.output_tokens == 2  # type: ignore[union-attr]
    assert turn.view.entries[0].content[2].call.input == {"path": "a"}  # type: ignore[union-attr, index]


async def test_a_session_here_is_a_session_there(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        mine: dict[str, Any] = {}
        first = await played(made, m.SendMessage(content="one"), metadata=mine)
        kept = mine[m.PRIVATE]["acp"]
        await played(made, m.SendMessage(content="two"), metadata=mine)
        assert mine[m.PRIVATE]["acp"] == kept
        yours: dict[str, Any] = {}
        await played(made, m.SendMessage(content="one"), metadata=yours)
        assert yours[m.PRIVATE]["acp"] != kept
    assert json.loads(first.text) == [{"type": "text", "text": "one"}]
    assert (tmp_path / "work" / "sess_1").is_dir()


async def test_what_the_agent_cannot_know_is_told_to_it(tmp_path: Path) -> None:
    history = [m.HistoryEntry(role=m.Role.USER, content=words, seq=1, at=0) for words in ("My name is Ada.", "?")]
    async with backend(tmp_path) as made:
        turn = await played(made, m.SendMessage(content="?"), history=history, settings=m.Settings(system="Be brief."))
    texts = [block["text"] for block in json.loads(turn.text)]
    assert texts == ["Be brief.", "Earlier in this conversation:\n\nUser: My name is Ada.", "?"]


async def test_pictures_and_files(tmp_path: Path) -> None:
    picture = m.ImagePart(url="data:image/gif;base64,R0lGOD==")
    file = m.FilePart(name="../../note.txt", url="data:text/plain,hello%20there")
    async with backend(tmp_path, "--images") as made:
        turn = await played(made, m.SendMessage(content=(m.TextPart(text="see"), picture, file)))
        _, image, link = json.loads(turn.text)
    assert image == {"type": "image", "data": "R0lGOA==", "mimeType": "image/gif"}
    assert link["uri"] == (tmp_path / "work" / "sess_1" / "note.txt").as_uri()
    assert (tmp_path / "work" / "sess_1" / "note.txt").read_text() == "hello there"
    async with backend(tmp_path) as made:
        with pytest.raises(Unsupported, match="takes no pictures"):
            await played(made, m.SendMessage(content=(picture,)))


# -- permission -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("answer", "told"), [
    (m.DecidePermission(request_id="x", granted=True), {"outcome": "selected", "optionId": "yes"}),
    (m.DecidePermission(request_id="x", granted=False), {"outcome": "selected", "optionId": "no"}),
    (m.Withdraw(request_id="x"), {"outcome": "cancelled"}),
], ids=["granted", "denied", "withdrawn"])
async def test_permission_is_asked_for_and_the_answer_picks_the_option(tmp_path: Path, answer: Any, told: Any) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, text("Let me look."), ["permission", LOOK], answering=lambda ask, request_id: answer)
    [[ask]] = turn.asks
    assert (ask.call.name, ask.call.input, ask.description) == ("execute", {"command": "ls"}, "List files")  # type: ignore[union-attr]
    assert turn.text == "Let me look." + json.dumps(told)


async def test_a_call_that_is_not_begun_is_told_after_a_while(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = Turn(call("c1", rawInput={"path": "a"}), ["hang"])
        await interrupted(made, turn, "block.ended")
    assert turn.all(m.BlockEnded)[0].call.input == {"path": "a"}


async def test_permissions_wanted_together_are_asked_for_together(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        more = [{**LOOK, "toolCallId": f"c{number}"} for number in range(5)]
        turn = await played(made, ["permission", *more])
    assert sum(map(len, turn.asks)) == 5
    assert turn.text.count("yes") == 5


@pytest.mark.parametrize(("settings", "headless", "option"), [
    (m.Settings(tools={"execute": m.Permission.ALLOW}), False, "yes"),
    (m.Settings(tools={"execute": m.Permission.DENY}), True, "no"),
    (m.Settings(), True, "yes"),
])
async def test_what_is_settled_beforehand_is_not_asked(
    tmp_path: Path, settings: m.Settings, headless: bool, option: str,
) -> None:
    command = m.SendMessage(content=json.dumps([["permission", LOOK]]), headless=headless)
    async with backend(tmp_path) as made:
        turn = await played(made, command, settings=settings)
    assert turn.asks == []
    assert json.loads(turn.text)["optionId"] == option


async def test_an_agent_that_dies_while_people_think_ends_the_turn(tmp_path: Path) -> None:
    class Waiting(Turn):
        async def ask(self, *asks: Any, scope_id: str = "root") -> Any:
            os.kill(int(self.text), 9)
            await asyncio.Event().wait()

    async with backend(tmp_path) as made:
        turn = Waiting(["pid"], ["permission", LOOK])
        with pytest.raises(BackendFailed, match=r"ended unexpectedly \(signal 9\)"):
            await record_all(made.run(turn), turn)


async def test_a_turn_that_waited_when_the_server_stopped_is_over(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        with pytest.raises(Interrupted, match="has stopped waiting"):
            async for _ in made.resume(Turn(["pid"]), [m.DecidePermission(request_id="x", granted=True)]):
                pass


async def test_a_history_that_the_agent_keeps_is_not_compacted(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = Turn(["pid"])
        turn.command = m.Compact()
        with pytest.raises(Unsupported, match="cannot be compacted"):
            async for _ in made.run(turn):
                pass


# -- files ------------------------------------------------------------------------------------------------------------

async def test_files_are_read_and_written_in_the_sessions_folder(tmp_path: Path) -> None:
    place = tmp_path / "work" / "sess_1"
    async with backend(tmp_path) as made:
        turn = await played(
            made, ["request", "fs/write_text_file", {"path": f"{place}/deep/a.txt", "content": "one\ntwo\nthree"}],
            ["request", "fs/read_text_file", {"path": f"{place}/deep/a.txt", "line": 2, "limit": 1}],
        )
        assert (place / "deep" / "a.txt").read_text() == "one\ntwo\nthree"
        assert turn.text == '{"result": {}}{"result": {"content": "two\\n"}}'
        (tmp_path / "secret.txt").write_text("hunter2")
        (place / "out").symlink_to(tmp_path)
        for path in ("/etc/passwd", str(place / ".." / ".." / "secret.txt"), str(place / "out" / "secret.txt")):
            turn = await played(made, ["request", "fs/read_text_file", {"path": path}])
            assert "outside the session's folder" in json.loads(turn.text)["error"]["message"]
            turn = await played(made, ["request", "fs/write_text_file", {"path": path, "content": "x"}])
            assert "outside the session's folder" in json.loads(turn.text)["error"]["message"]
    assert (tmp_path / "secret.txt").read_text() == "hunter2"


@pytest.mark.parametrize(("method", "params", "code"), [
    ("terminal/create", {"command": "ls"}, -32601),
    ("fs/read_text_file", {"path": 7}, -32602),
    ("session/request_permission", {"toolCall": "what?"}, -32602),
])
async def test_what_is_not_offered_or_not_understood_is_refused(
    tmp_path: Path, method: str, params: Any, code: int,
) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, ["request", method, params])
    assert json.loads(turn.text)["error"]["code"] == code


# -- cancelling -------------------------------------------------------------------------------------------------------

async def interrupted(made: AcpBackend, turn: Turn, upto: str) -> None:
    """Take what is said up to an event of this name, then close the generator as an interrupt does."""
    async with aclosing(made.run(turn)) as speech:
        async for output in speech:
            for said in events_of(output):
                turn.record(said)
            if any(said.name == upto for said in events_of(output)):  # type: ignore[union-attr]
                return


async def test_an_interrupt_cancels_the_prompt_and_the_session_goes_on(tmp_path: Path) -> None:
    async with backend(tmp_path, cancel_seconds=30) as made:
        mine: dict[str, Any] = {}
        await interrupted(made, Turn(["say", "one "], ["hang"], metadata=mine), "block.delta")
        before = mine[m.PRIVATE]["acp"]
        turn = await played(made, ["say", "two"], metadata=mine)
        assert (turn.text, mine[m.PRIVATE]["acp"]) == ("two", before)


async def test_an_agent_that_does_not_hear_the_cancel_loses_its_session(tmp_path: Path) -> None:
    async with backend(tmp_path, cancel_seconds=0.2) as made:
        mine: dict[str, Any] = {}
        await interrupted(made, Turn(["say", "one "], ["deaf"], metadata=mine), "block.delta")
        before = mine[m.PRIVATE]["acp"]
        turn = await played(made, ["say", "two"], metadata=mine)
        assert turn.text == "two"
        assert mine[m.PRIVATE]["acp"] != before


async def test_an_agent_that_storms_on_does_not_hold_up_others(tmp_path: Path) -> None:
    async with backend(tmp_path, cancel_seconds=0.02) as made:
        await interrupted(made, Turn(["say", "one "], ["storm"]), "block.delta")
        assert (await played(made, ["say", "two"])).text == "two"


async def test_an_agent_that_cancels_by_itself_has_interrupted_the_turn(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        with pytest.raises(Interrupted, match="cancelled its turn"):
            await played(made, ["say", "one "], ["stop", "cancelled"])


# -- dying and coming back --------------------------------------------------------------------------------------------

async def test_an_agent_that_dies_fails_its_turn_and_is_started_anew(tmp_path: Path) -> None:
    async with backend(tmp_path, env={"KEY": "hunter2-secret"}) as made:
        mine: dict[str, Any] = {}
        turn = Turn(["say", "I "], ["die", 3, "warning\npanic: hunter2-secret is wrong"], metadata=mine)
        with pytest.raises(BackendFailed, match=r"ended unexpectedly \(exit code 3\): panic: \*\*\* is wrong$"):
            await record_all(made.run(turn), turn)
        before = mine[m.PRIVATE]["acp"]
        assert (await played(made, ["say", "am back"], metadata=mine)).text == "am back"
        assert mine[m.PRIVATE]["acp"] != before


async def test_a_session_is_loaded_where_the_agent_can(tmp_path: Path) -> None:
    async with backend(tmp_path, "--load") as made:
        mine: dict[str, Any] = {}
        with pytest.raises(BackendFailed):
            await played(made, ["die", 1, ""], metadata=mine)
        before = mine[m.PRIVATE]["acp"]
        turn = await played(made, ["say", "am back"], metadata=mine)
        assert (turn.text, mine[m.PRIVATE]["acp"]) == ("am back", before)


async def test_an_agent_is_not_started_over_and_over(tmp_path: Path) -> None:
    async with backend(tmp_path, starts_per_minute=2) as made:
        for _ in range(2):
            with pytest.raises(BackendFailed):
                await played(made, ["die", 1, ""])
        with pytest.raises(Overloaded, match="2 times within a minute") as refused:
            await played(made, ["say", "hello"])
        assert 1 <= (refused.value.fault.details or {})["retry_after"] <= 60


async def test_nothing_of_an_agent_is_left(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, ["pid"], ["say", " "], ["spawn"])
        pids = [int(word) for word in turn.text.split()]
    assert all(map(_is_over, pids))


def _is_over(pid: int) -> bool:
    """Wait until the process has ended, in the system's time: a grandchild is init's to bury, and may stay a zombie."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 60)[0])
    finally:
        os.close(process)


# -- bad agents -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("flag", "given", "error", "words"), [
    ("--die", {"env": {"KEY": "hunter2-secret"}}, BackendFailed, r"\(exit code 1\): no licence: key \*\*\* is not"),
    ("--mute", {"start_seconds": 0.3}, TimedOut, "did not answer initialize within 0.3 seconds"),
    ("--garbage", {}, BackendFailed, "nothing but garbage"),
    ("--seven", {}, BackendFailed, "speaks version 7"),
    ("--poor", {}, BackendFailed, "refused session/new: Authentication required"),
    ("", {"command": "/nobody/has/this"}, BackendFailed, "'/nobody/has/this' cannot be started: No such file"),
    ("", {"command": "./agent"}, BackendFailed, "agent' cannot be started: No such file"),
])
async def test_an_agent_that_cannot_be_had(tmp_path: Path, flag: str, given: Any, error: Any, words: str) -> None:
    async with backend(tmp_path, flag, **given) as made:
        with pytest.raises(error, match=words):
            await played(made, ["say", "hello"])


@pytest.mark.parametrize(("step", "words"), [
    (["flood", 2_000_000], "a line of more than 1000000 bytes"),
    (["die", -1, ""], "ended unexpectedly"),
])
async def test_an_agent_that_breaks_in_the_middle(tmp_path: Path, step: Any, words: str) -> None:
    async with backend(tmp_path, line_bytes=1_000_000) as made:
        with pytest.raises(BackendFailed, match=words):
            await played(made, ["say", "so far "], step)
        assert (await played(made, ["say", "so good"])).text == "so good"


async def test_a_little_garbage_is_passed_over(tmp_path: Path) -> None:
    odd = [
        "not json", "{}", '{"jsonrpc": "2.0", "method": "session/update"}', '{"id": 99999, "result": {}}', "[]",
        '{"method": "session/update", "params": {"sessionId": "x", "update": {"sessionUpdate": 7}}}',
        '{"method": "session/update", "params": {"sessionId": "nobody", "update": {"sessionUpdate": "plan"}}}',
    ]
    async with backend(tmp_path, "--babble") as made:
        lines = [["raw", line] for line in odd]
        turn = await played(made, *lines, ["update", {"sessionUpdate": "news"}], ["say", "here"])
    assert turn.text == "here"


async def test_the_agents_environment_is_what_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAYS_OWN_KEY", "hunter2")
    monkeypatch.setenv("AGENTS_KEY", "swordfish")
    async with backend(tmp_path, env={"KEY": "$AGENTS_KEY"}) as made:
        turn = await played(made, ["env", "GATEWAYS_OWN_KEY"], ["say", " "], ["env", "KEY"])
    assert turn.text == "(nothing) swordfish"


async def test_standard_error_goes_to_the_journal(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as told:
        async with backend(tmp_path, env={"KEY": "hunter2-secret"}) as made:
            await played(made, ["stderr", "loading hunter2-secret"], ["stderr", "x" * 5000], ["say", "ready"])
            await until(lambda: sum("line" in entry for entry in told) == 2)
    first, second = [entry for entry in told if "line" in entry]
    assert (first["log_level"], first["line"]) == ("debug", "loading ***")
    assert second["line"] == "x" * 300


async def test_what_a_call_left_open_is_closed(tmp_path: Path) -> None:
    async with backend(tmp_path) as made:
        turn = await played(made, call("c1"), call("c2", status="in_progress"))
    assert [event.is_error for event in turn.all(m.ToolReturned)] == [True, True]
