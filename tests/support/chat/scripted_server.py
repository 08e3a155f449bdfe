"""A server that says what a test wants, and a person who types what a test wants."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import gateway.model as m
from gateway.chat.terminal_input import InterruptPressed
from gateway.errors import GatewayError
from gateway.ports.remote import DecodedItem, NewRemoteSession, RemoteAsk, RemoteSession, RemoteTurnEnd, SessionPlaces

Step = DecodedItem | GatewayError | Callable[[], None] | None


class ScriptedRemote:
    """Each message is answered by the next script; a script may raise, or say nothing until it is interrupted.

    A function in a script is called when its turn comes.
    """

    supports_permissions = True

    def __init__(self, *scripts: Sequence[Step], deaf: bool = False) -> None:
        self.scripts = list(scripts)
        self.deaf = deaf
        """Whether nothing comes of an interruption."""
        self.openings: list[NewRemoteSession] = []
        self.said: list[m.SendMessage | m.Compact] = []
        self.settings: list[m.Settings | None] = []
        """What came with each message."""
        self.answers: list[m.Answer] = []
        self.interrupted = 0
        self.closed = False
        self.when_interrupted: Callable[[], None] | None = None
        self._stop = asyncio.Event()

    async def places(self) -> SessionPlaces:
        return SessionPlaces()

    async def about(self) -> m.AgentCard:
        return m.AgentCard(name="scripted")

    async def open(self, opening: NewRemoteSession) -> str:
        self.openings.append(opening)
        return f"sess_{len(self.openings)}"

    async def sessions(self, most: int) -> Sequence[RemoteSession]:
        return [RemoteSession(session_id=f"sess_{number + 1}") for number in range(len(self.openings))][:most]

    async def join(self, session_id: str) -> RemoteSession:
        return RemoteSession(session_id=session_id)

    async def start_turn(
        self, session_id: str, command: m.SendMessage | m.Compact, settings: m.Settings | None = None,
    ) -> AsyncGenerator[DecodedItem, None]:
        self.said.append(command)
        self.settings.append(settings)
        async for heard in self._perform():
            yield heard

    async def answer(
        self, session_id: str, answers: Sequence[tuple[RemoteAsk, m.Answer]],
    ) -> AsyncGenerator[DecodedItem, None]:
        self.answers += [answer for _, answer in answers]
        async for heard in self._perform():
            yield heard

    async def interrupt(self, session_id: str) -> None:
        self.interrupted += 1
        if self.when_interrupted is not None:
            self.when_interrupted()
        if not self.deaf:
            self._stop.set()

    async def close(self) -> None:
        self.closed = True

    async def _perform(self) -> AsyncGenerator[DecodedItem, None]:
        for step in self.scripts.pop(0):
            if isinstance(step, GatewayError):
                raise step
            if step is None:
                async with asyncio.timeout(60):
                    await self._stop.wait()
                yield RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)
            elif callable(step):
                step()
            else:
                yield step


class ScriptedUser:
    """Types these lines, and presses Ctrl-C where there is a None; then there is nobody any more."""

    def __init__(self, *lines: str | None) -> None:
        self.lines = list(lines)
        self.labels: list[str] = []

    def read(self, label: str) -> str:
        self.labels.append(label)
        if not self.lines:
            raise EOFError
        line = self.lines.pop(0)
        if line is None:
            raise InterruptPressed
        return line


class RecordingScreen:
    """A screen that keeps what it is told to show."""

    def __init__(self) -> None:
        self.is_raw = False
        self.shown: list[str] = []
        self.things: list[DecodedItem] = []

    def note(self, text: str) -> None:
        self.shown.append(text)

    def error(self, text: str) -> None:
        self.shown.append(f"! {text}")

    def ask(self, text: str) -> None:
        self.shown.append(text)

    def begin_turn(self) -> None:
        self.shown.append("-")

    def show(self, heard: DecodedItem) -> None:
        self.things.append(heard)

    def end_output(self) -> None:
        """Nothing flows here."""
