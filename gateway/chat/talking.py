"""The conversation: what a person types goes to the server, what the server says is shown, until somebody leaves."""

from typing import Protocol

from gateway.errors import GatewayError, TimedOut
from gateway.model import SendMessage, Settings
from gateway.upstream import Asked, Ended, Heard

from .asking import Asking
from .bell import Rung
from .line import Line, Stream
from .prompting import Prompt

PROMPT = "> "
INTERRUPTING_SECONDS = 10.0
"""How long the server is given to end a turn that was interrupted."""
LEFT_AT_ONCE = 130
"""The exit code of a program that was stopped by Ctrl-C."""
HELP = """\
/new    a new session, which knows nothing of this one
/raw    show events as they are, or no longer
/exit   leave; so do Ctrl-C and Ctrl-D at the prompt
/help   this
Ctrl-C while the agent speaks interrupts it. Everything else goes to the server as it is, also what begins with /."""


class Screen(Protocol):
    """Who shows what is heard."""

    is_raw: bool

    def note(self, text: str) -> None: ...
    def trouble(self, text: str) -> None: ...
    def ask(self, text: str) -> None: ...
    def begin(self) -> None: ...
    def heard(self, heard: Heard) -> None: ...
    def rest(self) -> None: ...


class Left(Exception):
    """Somebody has had enough."""

    def __init__(self, code: int = 0) -> None:
        self.code = code


class Talk:
    """One person, one line. `is_patient` goes on after a failure, as a person would; a pipe is told of it and stops."""

    def __init__(
        self, line: Line, screen: Screen, prompt: Prompt, session_id: str, *, settings: Settings, is_patient: bool,
        keeps_settings: bool = False,
    ) -> None:
        """`keeps_settings`: the session was there before us, and has settings that nobody here wants to change."""
        self._line, self._screen, self._prompt = line, screen, prompt
        self._settings, self._is_patient = settings, is_patient
        self._keeps_settings = keeps_settings
        self._asking = Asking(screen, prompt)
        self._session_id = session_id
        self._failed = False

    def run(self) -> int:
        """The exit code."""
        try:
            while not self._failed or self._is_patient:
                self._hear_person()
            return 1
        except Left as left:
            return left.code

    def _hear_person(self) -> None:
        try:
            said = self._prompt.read(PROMPT).strip()
        except (EOFError, Rung):
            self._screen.note("")
            raise Left from None
        command = COMMANDS.get(said)
        if command is not None:
            command(self)
        elif said:
            self._say(said)

    # -- commands -------------------------------------------------------------------------------------------------

    def _help(self) -> None:
        for line in HELP.splitlines():
            self._screen.note(line)

    def _new(self) -> None:
        try:
            self._session_id, self._keeps_settings = self._line.open(self._settings), False
            self._screen.note(f"a new session: {self._session_id}")
        except GatewayError as error:
            self._fail(error.message)
        except Rung:
            raise Left(LEFT_AT_ONCE) from None

    def _raw(self) -> None:
        self._screen.is_raw = not self._screen.is_raw
        self._screen.note("events are shown" if self._screen.is_raw else "events are no longer shown")

    def _exit(self) -> None:
        raise Left

    # -- a turn ---------------------------------------------------------------------------------------------------

    def _say(self, said: str) -> None:
        command = SendMessage(content=said, model=self._settings.model)
        self._screen.begin()
        try:
            stream: Stream | None = self._line.say(
                self._session_id, command, None if self._keeps_settings else self._settings)
            while stream is not None:
                asked = self._listen(stream)
                stream = self._answer(asked) if asked else None
        except GatewayError as error:
            self._fail(error.message)
        finally:
            self._screen.rest()

    def _listen(self, stream: Stream) -> list[Asked]:
        """Show what is heard, until the turn is over or waits; what was asked."""
        asked: list[Asked] = []
        while True:
            try:
                heard = stream.next()
            except Rung:
                self._interrupt(stream)
                return []
            if heard is None:
                return asked
            self._take(heard)
            if isinstance(heard, Asked):
                asked.append(heard)

    def _take(self, heard: Heard) -> None:
        self._screen.heard(heard)
        self._failed = self._failed or (isinstance(heard, Ended) and heard.fault is not None)

    def _answer(self, asked: list[Asked]) -> Stream | None:
        self._screen.rest()
        try:
            answers = self._asking.answers(asked)
        except Rung:
            self._interrupt(None)
            return None
        except EOFError:
            self._interrupt(None)
            raise Left(0 if self._is_patient else 1) from None
        return self._line.answer(self._session_id, answers)

    def _interrupt(self, stream: Stream | None) -> None:
        """Ask the server to end its turn, and hear how it does; whoever presses Ctrl-C again leaves at once."""
        self._screen.rest()
        self._screen.note("interrupting; Ctrl-C again leaves")
        try:
            self._line.wait(self._line.interrupt(self._session_id), INTERRUPTING_SECONDS)
            while stream is not None and (heard := stream.next(INTERRUPTING_SECONDS)) is not None:
                self._take(heard)
            if stream is None:
                self._screen.note("interrupted")
        except Rung:
            raise Left(LEFT_AT_ONCE) from None
        except TimedOut:
            self._screen.trouble("the server has not ended its turn; it is left alone")
            if stream is not None:
                stream.close()

    def _fail(self, message: str) -> None:
        self._failed = True
        self._screen.trouble(message)


COMMANDS = {"/help": Talk._help, "/new": Talk._new, "/raw": Talk._raw, "/exit": Talk._exit}
