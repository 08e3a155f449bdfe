"""The conversation: what is typed goes there, what comes is shown, and how it ends is the exit code."""

import asyncio
import io
import os
import signal
import sys
from types import CodeType, FrameType

import pytest

import gateway.model as m
from gateway.chat import conversation
from gateway.chat.conversation import ChatLoop
from gateway.chat.sync_client import SyncClient
from gateway.chat.terminal_input import InterruptPressed, InterruptWatcher, LinePrompt
from gateway.errors import BackendFailed, GatewayError
from gateway.ports.remote import NewRemoteSession, RemoteAsk, RemoteTurnEnd
from tests.support.chat.scripted_server import RecordingScreen, ScriptedRemote, ScriptedUser

ASK = RemoteAsk(ask=m.ContinuationAsk(turn=1, message="Go on?"), ref="r")
NOTICE = m.NoticePosted(topic="t", title="n")
FAULT = RemoteTurnEnd(outcome=m.Outcome.FAILED, fault=m.Fault(code=m.FaultCode.BACKEND, message="broken"))


def talk(remote: ScriptedRemote, person: ScriptedUser, *, patient: bool = True) -> tuple[int, RecordingScreen]:
    board = RecordingScreen()
    with InterruptWatcher() as bell, SyncClient(remote, bell) as line:
        settings = m.Settings(model="m", system="be kind")
        code = ChatLoop(line, board, person, line.open(settings), settings=settings, is_interactive=patient).run()
    return code, board


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_words_go_to_the_server_and_back() -> None:
    remote = ScriptedRemote([NOTICE, RemoteTurnEnd()], [RemoteTurnEnd()])
    code, board = talk(remote, ScriptedUser("hello", "", "/unknown thing"))
    assert code == 0
    assert remote.said == [
        m.SendMessage(content="hello", model="m"),
        m.SendMessage(content="/unknown thing", model="m"),
    ]
    assert board.things == [NOTICE, RemoteTurnEnd(), RemoteTurnEnd()]
    assert [opening.settings.system for opening in remote.openings] == ["be kind"]


def test_a_session_that_was_there_keeps_its_settings_and_a_new_one_gets_ours() -> None:
    remote, ours = ScriptedRemote([RemoteTurnEnd()], [RemoteTurnEnd()]), m.Settings(system="be kind")
    with InterruptWatcher() as bell, SyncClient(remote, bell) as line:
        session_id = line.join("sess_old").session_id
        person = ScriptedUser("hello", "/new", "again")
        talk = ChatLoop(
            line, RecordingScreen(), person, session_id, settings=ours, keeps_settings=True, is_interactive=True
        )
        assert talk.run() == 0
        assert [session.session_id for session in line.sessions(5)] == ["sess_1"]
    assert remote.settings == [None, ours]


def test_what_is_asked_is_answered() -> None:
    remote = ScriptedRemote([ASK], [RemoteTurnEnd()])
    assert talk(remote, ScriptedUser("hello", "n"))[0] == 0
    assert remote.answers == [m.ContinueTurn(request_id="r", proceed=False)]


def test_commands_of_the_prompt() -> None:
    remote = ScriptedRemote()
    code, board = talk(remote, ScriptedUser("/help", "/raw", "/raw", "/new", "/exit", "never said"))
    assert code == 0
    assert "/exit   leave, as Ctrl-C and Ctrl-D do at the prompt" in board.shown
    assert board.shown[-3:] == ["events are shown", "events are no longer shown", "a new session: sess_2"]
    assert len(remote.openings) == 2
    assert remote.said == []


def test_ctrl_c_at_the_prompt_leaves() -> None:
    assert talk(ScriptedRemote(), ScriptedUser(None))[0] == 0


@pytest.mark.parametrize("script", [[FAULT], [BackendFailed("broken")]])
def test_a_person_goes_on_after_a_failure_and_a_pipe_does_not(script: list[RemoteTurnEnd | GatewayError]) -> None:
    assert talk(ScriptedRemote(script, [RemoteTurnEnd()]), ScriptedUser("one", "two"))[0] == 0
    remote = ScriptedRemote(script, [RemoteTurnEnd()])
    assert talk(remote, ScriptedUser("one", "two"), patient=False)[0] == 1
    assert len(remote.said) == 1


def test_a_question_that_nobody_answers_ends_the_turn() -> None:
    for patient, expected in ((True, 0), (False, 1)):
        remote = ScriptedRemote([ASK])
        assert talk(remote, ScriptedUser("hello"), patient=patient)[0] == expected
        assert remote.interrupted == 1


def test_ctrl_c_at_a_question_interrupts_and_the_conversation_goes_on() -> None:
    remote = ScriptedRemote([ASK], [RemoteTurnEnd()])
    code, board = talk(remote, ScriptedUser("hello", None, "again"))
    assert (code, remote.interrupted, len(remote.said)) == (0, 1, 2)
    assert "interrupted" in board.shown


def test_ctrl_c_while_the_agent_speaks_interrupts_it() -> None:
    remote = ScriptedRemote([NOTICE, press, None], [RemoteTurnEnd()])
    code, board = talk(remote, ScriptedUser("hello", "again"))
    assert (code, remote.interrupted, len(remote.said)) == (0, 1, 2)
    assert isinstance(board.things[1], RemoteTurnEnd)
    assert board.things[1].outcome is m.Outcome.INTERRUPTED


def test_a_second_ctrl_c_leaves_at_once() -> None:
    remote = ScriptedRemote([NOTICE, press, None], deaf=True)
    remote.when_interrupted = press
    assert talk(remote, ScriptedUser("hello"))[0] == 130


def test_a_server_that_does_not_end_its_turn_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "INTERRUPT_SECONDS", 0.1)
    code, board = talk(ScriptedRemote([NOTICE, press, None], deaf=True), ScriptedUser("hello"))
    assert code == 0
    assert "! the server has not ended the turn; not waiting any longer" in board.shown


def test_nobody_to_talk_with_is_raised() -> None:
    class Closed(ScriptedRemote):
        async def open(self, opening: object) -> str:
            raise BackendFailed("closed")

    with pytest.raises(BackendFailed, match="closed"):
        talk(Closed(), ScriptedUser())


def test_a_new_session_that_cannot_be_had_is_told() -> None:
    class Once(ScriptedRemote):
        async def open(self, opening: object) -> str:
            if self.openings:
                raise BackendFailed("no more")
            return await super().open(opening)  # type: ignore[arg-type]

    assert "! no more" in talk(Once(), ScriptedUser("/new"))[1].shown


def test_ctrl_c_before_anything_is_open_leaves() -> None:
    class Slow(ScriptedRemote):
        async def open(self, opening: NewRemoteSession) -> str:
            if len(self.openings) + 1 == self.slow_at:
                press()
                await asyncio.Event().wait()
            return await super().open(opening)

        slow_at = 1

    with pytest.raises(InterruptPressed):
        talk(Slow(), ScriptedUser())
    second = Slow()
    second.slow_at = 2
    assert talk(second, ScriptedUser("/new"))[0] == 130


# -- whenever it comes ------------------------------------------------------------------------------------------------

Place = tuple[CodeType, int]


class Presser:
    """Presses Ctrl-C so many times when this thread first comes to a line of Python, of ours or of the library's.

    So it is pressed wherever a signal can be handled, also inside of the library's locks.
    """

    def __init__(self, place: Place | None, times: int) -> None:
        self.seen: dict[Place, None] = {}
        self._place, self._times = place, times

    def __call__(self, frame: FrameType, event: str, argument: object) -> "Presser":
        place = (frame.f_code, frame.f_lineno)
        if event == "line" and place not in self.seen:
            self.seen[place] = None
            for _ in range(self._times if place == self._place else 0):
                signal.raise_signal(signal.SIGINT)
        return self


def pressed(presser: Presser) -> int:
    """The exit code of a conversation in which Ctrl-C is pressed."""
    with (
        InterruptWatcher() as bell,
        SyncClient(ScriptedRemote([NOTICE, ASK], *[[NOTICE, RemoteTurnEnd()]] * 3), bell) as line,
    ):
        lines = LinePrompt(bell, io.StringIO("hello\ny\n"))
        before = sys.gettrace()
        sys.settrace(presser)
        try:
            session_id = line.open(m.Settings())
            return ChatLoop(
                line, RecordingScreen(), lines, session_id, settings=m.Settings(), is_interactive=True
            ).run()
        except InterruptPressed:
            return 130  # there was no session yet
        finally:
            sys.settrace(before)


def test_whenever_ctrl_c_comes_it_interrupts_or_leaves() -> None:
    """Whatever moment it is: the code is one of the promised ones, and nothing is raised but what is caught."""
    undisturbed = Presser(None, 0)
    assert pressed(undisturbed) == 0
    codes = {times: {pressed(Presser(place, times)) for place in undisturbed.seen} for times in (1, 2)}
    assert codes == {1: {0, 130}, 2: {0, 130}}
