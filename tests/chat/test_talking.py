"""The conversation: what is typed goes there, what comes is shown, and how it ends is the exit code."""

import pytest

from gateway.chat import talking
from gateway.chat.bell import Bell, Rung
from gateway.chat.line import Line
from gateway.chat.talking import Talk
from gateway.errors import BackendFailed, GatewayError
from gateway.model import ContinuationAsk, ContinueTurn, Fault, FaultCode, NoticePosted, Outcome, SendMessage, Settings
from gateway.upstream import Asked, Ended
from tests.support.chat.scripted_server import Board, Person, ScriptedRemote

ASK = Asked(ask=ContinuationAsk(turn=1, message="Go on?"), ref="r")
NOTICE = NoticePosted(topic="t", title="n")
FAULT = Ended(outcome=Outcome.FAILED, fault=Fault(code=FaultCode.BACKEND, message="broken"))


def talk(
    remote: ScriptedRemote, person: Person, *, patient: bool = True, bell: Bell | None = None,
) -> tuple[int, Board]:
    board = Board()
    with bell or Bell() as bell, Line(remote) as line:
        settings = Settings(model="m", system="be kind")
        code = Talk(line, board, person, bell, settings=settings, is_patient=patient).run()
    return code, board


def test_words_go_to_the_server_and_back() -> None:
    remote = ScriptedRemote([NOTICE, Ended()], [Ended()])
    code, board = talk(remote, Person("hello", "", "/unknown thing"))
    assert code == 0
    assert remote.said == [SendMessage(content="hello", model="m"), SendMessage(content="/unknown thing", model="m")]
    assert board.things == [NOTICE, Ended(), Ended()]
    assert [opening.settings.system for opening in remote.openings] == ["be kind"]


def test_what_is_asked_is_answered() -> None:
    remote = ScriptedRemote([ASK], [Ended()])
    assert talk(remote, Person("hello", "n"))[0] == 0
    assert remote.answers == [ContinueTurn(request_id="r", proceed=False)]


def test_commands_of_the_prompt() -> None:
    remote = ScriptedRemote()
    code, board = talk(remote, Person("/help", "/raw", "/raw", "/new", "/exit", "never said"))
    assert code == 0
    assert "/exit   leave; so do Ctrl-C and Ctrl-D at the prompt" in board.shown
    assert board.shown[-3:] == ["events are shown", "events are no longer shown", "a new session"]
    assert len(remote.openings) == 2
    assert remote.said == []


def test_ctrl_c_at_the_prompt_leaves() -> None:
    assert talk(ScriptedRemote(), Person(None))[0] == 0


@pytest.mark.parametrize("script", [[FAULT], [BackendFailed("broken")]])
def test_a_person_goes_on_after_a_failure_and_a_pipe_does_not(script: list[Ended | GatewayError]) -> None:
    assert talk(ScriptedRemote(script, [Ended()]), Person("one", "two"))[0] == 0
    remote = ScriptedRemote(script, [Ended()])
    assert talk(remote, Person("one", "two"), patient=False)[0] == 1
    assert len(remote.said) == 1


def test_a_question_that_nobody_answers_ends_the_turn() -> None:
    for patient, expected in ((True, 0), (False, 1)):
        remote = ScriptedRemote([ASK])
        assert talk(remote, Person("hello"), patient=patient)[0] == expected
        assert remote.interrupted == 1


def test_ctrl_c_at_a_question_interrupts_and_the_conversation_goes_on() -> None:
    remote = ScriptedRemote([ASK], [Ended()])
    code, board = talk(remote, Person("hello", None, "again"))
    assert (code, remote.interrupted, len(remote.said)) == (0, 1, 2)
    assert "interrupted" in board.shown


class Pressing(Bell):
    """Ctrl-C is pressed at these of the times that somebody begins to listen."""

    def __init__(self, *times: int) -> None:
        super().__init__()
        self.times, self.count = times, 0

    def listening(self):  # type: ignore[no-untyped-def]
        self.count += 1
        self._rung = self._rung or self.count in self.times
        return super().listening()


def test_ctrl_c_while_the_agent_speaks_interrupts_it() -> None:
    remote = ScriptedRemote([NOTICE, None], [Ended()])
    code, board = talk(remote, Person("hello", "again"), bell=Pressing(3))
    assert (code, remote.interrupted, len(remote.said)) == (0, 1, 2)
    assert isinstance(board.things[1], Ended)
    assert board.things[1].outcome is Outcome.INTERRUPTED


def test_a_second_ctrl_c_leaves_at_once() -> None:
    code, _ = talk(ScriptedRemote([NOTICE, None]), Person("hello"), bell=Pressing(3, 4))
    assert code == 130


def test_a_server_that_does_not_end_its_turn_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talking, "INTERRUPTING_SECONDS", 0.1)
    code, board = talk(ScriptedRemote([NOTICE, None], deaf=True), Person("hello"), bell=Pressing(3))
    assert code == 0
    assert "! the server has not ended its turn; it is left alone" in board.shown


def test_nobody_to_talk_with_is_raised() -> None:
    class Closed(ScriptedRemote):
        async def open(self, opening: object) -> str:
            raise BackendFailed("closed")

    with pytest.raises(BackendFailed, match="closed"):
        talk(Closed(), Person())


def test_a_new_session_that_cannot_be_had_is_told() -> None:
    class Once(ScriptedRemote):
        async def open(self, opening: object) -> str:
            if self.openings:
                raise BackendFailed("no more")
            return await super().open(opening)  # type: ignore[arg-type]

    assert "! no more" in talk(Once(), Person("/new"))[1].shown


def test_ctrl_c_before_anything_is_open_leaves() -> None:
    with pytest.raises(Rung):
        talk(ScriptedRemote(), Person(), bell=Pressing(1))
