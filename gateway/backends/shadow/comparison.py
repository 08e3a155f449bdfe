"""The structure of a turn without its text, the differences of two turns, and the report file."""

import asyncio
import time
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import msgspec
import structlog

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ports import BackendEvent, Clock, ScopedEvent
from gateway.private_files import make_private_folder, private_opener

MAX_FACTS = 10_000
"""Only so many facts of a turn are kept and compared."""
_NOT_AN_END = (m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)


class TurnStructure:
    """The facts of one turn: blocks, calls, results, asks and the end. How text is divided is no fact."""

    def __init__(self) -> None:
        self._facts: list[str] = []
        self._results: list[str] = []
        self._calls: dict[str, str] = {}
        self._scopes: dict[str, str] = {m.ROOT: ""}
        self._end = ""
        self._stop = m.StopReason.END_TURN

    @property
    def facts(self) -> list[str]:
        """All facts in order; results between two other facts are sorted, since calls run in parallel."""
        return [*self._facts, *sorted(self._results), self._end or f"ended: {self._stop}"]

    def add(self, output: BackendEvent) -> None:
        event, scope_id = (output.event, output.scope_id) if isinstance(output, ScopedEvent) else (output, m.ROOT)
        if isinstance(event, m.BlockEnded):
            self._block(event, scope_id)
        elif isinstance(event, m.ToolReturned):
            name = self._calls.get(event.call_id, "an unknown call")
            self._results.append(self._in(scope_id, f"result of {name}: {'error' if event.is_error else 'ok'}"))
        elif isinstance(event, m.ScopeOpened):
            self._scopes[scope_id] = f"{self._scopes.get(event.parent, '')}sub-agent: "
            self._note("sub-agent opened", event.parent)
        elif isinstance(event, m.SessionCompacted):
            self._note("compacted", scope_id)
        elif isinstance(event, m.MessageEnded) and scope_id == m.ROOT:
            self._stop = m.StopReason.END_TURN if event.stop_reason in _NOT_AN_END else event.stop_reason

    def ask(self, asks: Sequence[m.AnyAsk], scope_id: str = m.ROOT) -> None:
        for ask in asks:
            call = m.call_of(ask)
            about = f" {call.name}" if call else ""
            many = f" ({len(ask.questions)})" if isinstance(ask, m.QuestionAsk) else ""
            self._note(f"asked: {ask.kind}{about}{many}", scope_id)

    def fail(self, error: BaseException) -> None:
        self._end = f"failed: {error.code if isinstance(error, GatewayError) else type(error).__name__}"

    # -- facts ----------------------------------------------------------------------------------------------------

    def _block(self, event: m.BlockEnded, scope_id: str) -> None:
        if event.torn:
            self._note("torn call", scope_id)
        elif event.call is not None:
            self._calls[event.call.call_id] = event.call.name
            self._note(f"call {event.call.name}({', '.join(sorted(event.call.input))})", scope_id)
        elif event.data is not None:
            self._note(f"data: {event.data.type}", scope_id)
        elif event.kind is m.BlockKind.IMAGE or event.text:
            self._note(str(event.kind), scope_id, once=True)

    def _note(self, fact: str, scope_id: str, *, once: bool = False) -> None:
        fact = self._in(scope_id, fact)
        if once and not self._results and self._facts and self._facts[-1] == fact:
            return
        self._facts += [*sorted(self._results), fact]
        self._results.clear()
        del self._facts[MAX_FACTS:]

    def _in(self, scope_id: str, fact: str) -> str:
        return f"{self._scopes.get(scope_id, '')}{fact}"


def differences(first: Sequence[str], second: Sequence[str]) -> list[dict[str, object]]:
    """The differences: the number of the fact, the facts of the first turn there, and those of the second."""
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return [
        {"at": low, "first": list(first[low:high]), "second": list(second[begin:end])}
        for kind, low, high, begin, end in matcher.get_opcodes() if kind != "equal"
    ]


log = structlog.get_logger("dragoman.shadow")
MAX_REPORT_BYTES = 64 * 1024 * 1024
"""A larger report is moved aside, over the one before it."""


class ShadowReport:
    """The report file, with a line of JSON per shadowed turn."""

    def __init__(self, path: Path, *, clock: Clock = time.time, largest: int = MAX_REPORT_BYTES) -> None:
        self.path, self._clock, self._largest = path, clock, largest
        self._lock = asyncio.Lock()

    async def write(
        self, *, session_id: str, turn_id: str, agent: str, verdict: str, differences: Sequence[dict[str, Any]] = (),
        reason: str = "",
    ) -> None:
        """`verdict` is same, differs or failed."""
        line = {
            "at": self._clock(), "session_id": session_id, "turn_id": turn_id, "agent": agent, "verdict": verdict,
            **({"differences": list(differences)} if differences else {}), **({"reason": reason} if reason else {}),
        }
        if verdict in ("differs", "failed"):
            first = differences[0] if differences else reason
            log.warning("shadow_differs" if verdict == "differs" else "shadow_failed",
                        session=session_id, turn=turn_id, agent=agent, first=first)
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, msgspec.json.encode(line) + b"\n")
            except OSError as error:
                log.error("shadow_report_not_written", path=str(self.path), reason=str(error))

    def _write(self, line: bytes) -> None:
        make_private_folder(self.path.parent)
        if self.path.exists() and self.path.stat().st_size + len(line) > self._largest:
            self.path.replace(self.path.with_suffix(".old" + self.path.suffix))
        with open(self.path, "ab", opener=private_opener) as file:  # Path has no opener
            file.write(line)
