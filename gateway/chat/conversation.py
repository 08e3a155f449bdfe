"""The chat loop: sends what the person types, and shows what the server sends, until one of them ends it."""

from typing import Protocol

import gateway.model as m
from gateway.errors import GatewayError, TimedOut
from gateway.ports import DecodedItem, RemoteAsk, RemoteTurnEnd

from .ask_prompts import AskPrompter
from .sync_client import SyncClient, SyncStream
from .terminal_input import InterruptPressed, Prompt

PROMPT = "> "
INTERRUPT_SECONDS = 10.0
"""Seconds that the server has to end an interrupted turn."""
EXIT_INTERRUPTED = 130
"""The exit code of a program that Ctrl-C stopped."""
HELP = """\
/new    start a new session
/raw    show events as JSON, or hide them
/exit   leave, as Ctrl-C and Ctrl-D do at the prompt
/help   show this text
Ctrl-C while the agent answers interrupts the turn. All other text goes to the server, even if it begins with /."""


class Screen(Protocol):
    """Shows the events of a conversation."""

    is_raw: bool

    def note(self, text: str) -> None: ...
    def error(self, text: str) -> None: ...
    def ask(self, text: str) -> None: ...
    def begin_turn(self) -> None: ...
    def show(self, item: DecodedItem) -> None: ...
    def end_output(self) -> None: ...


class ChatExit(Exception):
    """The person leaves the conversation."""

    def __init__(self, code: int = 0) -> None:
        self.code = code


class ChatLoop:
    """One conversation. An interactive one goes on after a failure; input from a pipe ends with it."""

    def __init__(
        self,
        client: SyncClient,
        screen: Screen,
        prompt: Prompt,
        session_id: str,
        *,
        settings: m.Settings,
        is_interactive: bool,
        keeps_settings: bool = False,
    ) -> None:
        """Make a loop; `keeps_settings` says that the session existed before and its settings should not change."""
        self._client, self._screen, self._prompt = client, screen, prompt
        self._settings, self._is_interactive = settings, is_interactive
        self._keeps_settings = keeps_settings
        self._asking = AskPrompter(screen, prompt)
        self._session_id = session_id
        self._failed = False

    def run(self) -> int:
        """Run the conversation and return the exit code."""
        try:
            while not self._failed or self._is_interactive:
                self._read_prompt()
            return 1
        except ChatExit as left:
            return left.code

    def _read_prompt(self) -> None:
        try:
            text = self._prompt.read(PROMPT).strip()
        except (EOFError, InterruptPressed):
            self._screen.note("")
            raise ChatExit from None
        command = COMMANDS.get(text)
        if command is not None:
            command(self)
        elif text:
            self._send(text)

    # -- commands -------------------------------------------------------------------------------------------------

    def _help(self) -> None:
        for line in HELP.splitlines():
            self._screen.note(line)

    def _new(self) -> None:
        try:
            self._session_id, self._keeps_settings = self._client.open(self._settings), False
            self._screen.note(f"a new session: {self._session_id}")
        except GatewayError as error:
            self._fail(error.message)
        except InterruptPressed:
            raise ChatExit(EXIT_INTERRUPTED) from None

    def _raw(self) -> None:
        self._screen.is_raw = not self._screen.is_raw
        self._screen.note("events are shown" if self._screen.is_raw else "events are no longer shown")

    def _exit(self) -> None:
        raise ChatExit

    # -- a turn ---------------------------------------------------------------------------------------------------

    def _send(self, text: str) -> None:
        command = m.SendMessage(content=text, model=self._settings.model)
        self._screen.begin_turn()
        try:
            stream: SyncStream | None = self._client.start_turn(
                self._session_id, command, None if self._keeps_settings else self._settings)
            while stream is not None:
                asked = self._listen(stream)
                stream = self._answer(asked) if asked else None
        except GatewayError as error:
            self._fail(error.message)
        finally:
            self._screen.end_output()

    def _listen(self, stream: SyncStream) -> list[RemoteAsk]:
        """Show events until the turn ends or waits; return the asks."""
        asked: list[RemoteAsk] = []
        while True:
            try:
                item = stream.next()
            except InterruptPressed:
                self._interrupt(stream)
                return []
            if item is None:
                return asked
            self._take(item)
            if isinstance(item, RemoteAsk):
                asked.append(item)

    def _take(self, item: DecodedItem) -> None:
        self._screen.show(item)
        self._failed = self._failed or (isinstance(item, RemoteTurnEnd) and item.fault is not None)

    def _answer(self, asked: list[RemoteAsk]) -> SyncStream | None:
        self._screen.end_output()
        try:
            answers = self._asking.answers(asked)
        except InterruptPressed:
            self._interrupt(None)
            return None
        except EOFError:
            self._interrupt(None)
            raise ChatExit(0 if self._is_interactive else 1) from None
        return self._client.answer(self._session_id, answers)

    def _interrupt(self, stream: SyncStream | None) -> None:
        """Ask the server to end its turn, and show how it ends; a second Ctrl-C leaves at once."""
        self._screen.end_output()
        self._screen.note("interrupting; Ctrl-C again leaves")
        try:
            self._client.wait(self._client.interrupt(self._session_id), INTERRUPT_SECONDS)
            while stream is not None and (item := stream.next(INTERRUPT_SECONDS)) is not None:
                self._take(item)
            if stream is None:
                self._screen.note("interrupted")
        except InterruptPressed:
            raise ChatExit(EXIT_INTERRUPTED) from None
        except TimedOut:
            self._screen.error("the server has not ended the turn; not waiting any longer")
            if stream is not None:
                stream.close()

    def _fail(self, message: str) -> None:
        self._failed = True
        self._screen.error(message)


COMMANDS = {"/help": ChatLoop._help, "/new": ChatLoop._new, "/raw": ChatLoop._raw, "/exit": ChatLoop._exit}
