"""What a turn is made of, without its words: which blocks, which calls, which asks, and how it ended."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from gateway.errors import GatewayError
from gateway.model import (
    ROOT,
    AnyAsk,
    BlockEnded,
    BlockKind,
    MessageEnded,
    QuestionAsk,
    ScopeOpened,
    SessionCompacted,
    StopReason,
    ToolReturned,
    call_of,
)
from gateway.ports import Said, Scoped

MOST = 10_000
"""So many facts of a turn are kept; a turn of more is compared by its beginning."""
_NOT_AN_END = (StopReason.TOOL_USE, StopReason.NEEDS_INPUT)


class Structure:
    """Takes note of one turn as its agent tells it; how words are cut into messages and pieces is left to each."""

    def __init__(self) -> None:
        self._facts: list[str] = []
        self._results: list[str] = []
        self._calls: dict[str, str] = {}
        self._scopes: dict[str, str] = {ROOT: ""}
        self._end = ""
        self._stop = StopReason.END_TURN

    @property
    def facts(self) -> list[str]:
        """All of it in order; results that came between the same words are sorted, for calls run side by side."""
        return [*self._facts, *sorted(self._results), self._end or f"ended: {self._stop}"]

    def say(self, said: Said) -> None:
        event, scope_id = (said.event, said.scope_id) if isinstance(said, Scoped) else (said, ROOT)
        if isinstance(event, BlockEnded):
            self._block(event, scope_id)
        elif isinstance(event, ToolReturned):
            name = self._calls.get(event.call_id, "a call nobody made")
            self._results.append(self._in(scope_id, f"result of {name}: {'error' if event.is_error else 'ok'}"))
        elif isinstance(event, ScopeOpened):
            self._scopes[scope_id] = f"{self._scopes.get(event.parent, '')}sub-agent: "
            self._note("sub-agent opened", event.parent)
        elif isinstance(event, SessionCompacted):
            self._note("compacted", scope_id)
        elif isinstance(event, MessageEnded) and scope_id == ROOT:
            self._stop = StopReason.END_TURN if event.stop_reason in _NOT_AN_END else event.stop_reason

    def ask(self, asks: Sequence[AnyAsk], scope_id: str = ROOT) -> None:
        for ask in asks:
            call = call_of(ask)
            about = f" {call.name}" if call else ""
            many = f" ({len(ask.questions)})" if isinstance(ask, QuestionAsk) else ""
            self._note(f"asked: {ask.kind}{about}{many}", scope_id)

    def fail(self, error: BaseException) -> None:
        self._end = f"failed: {error.code if isinstance(error, GatewayError) else type(error).__name__}"

    # -- taking note --------------------------------------------------------------------------------------------------

    def _block(self, event: BlockEnded, scope_id: str) -> None:
        if event.torn:
            self._note("torn call", scope_id)
        elif event.call is not None:
            self._calls[event.call.call_id] = event.call.name
            self._note(f"call {event.call.name}({', '.join(sorted(event.call.input))})", scope_id)
        elif event.data is not None:
            self._note(f"data: {event.data.type}", scope_id)
        elif event.kind is BlockKind.IMAGE or event.text:
            self._note(str(event.kind), scope_id, once=True)

    def _note(self, fact: str, scope_id: str, *, once: bool = False) -> None:
        fact = self._in(scope_id, fact)
        if once and not self._results and self._facts and self._facts[-1] == fact:
            return
        self._facts += [*sorted(self._results), fact]
        self._results.clear()
        del self._facts[MOST:]

    def _in(self, scope_id: str, fact: str) -> str:
        return f"{self._scopes.get(scope_id, '')}{fact}"


def differences(first: Sequence[str], second: Sequence[str]) -> list[dict[str, object]]:
    """Where the second departs from the first: at which fact, what the one had there, and what the other."""
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return [
        {"at": low, "first": list(first[low:high]), "second": list(second[begin:end])}
        for kind, low, high, begin, end in matcher.get_opcodes() if kind != "equal"
    ]
