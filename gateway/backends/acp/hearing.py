"""An agent's session updates, heard: what it says, thinks, plans and does becomes lawful events. No clock, no wire."""

from typing import Any

import structlog

from gateway.ids import Mint
from gateway.model import (
    BlockKind,
    Content,
    DataPart,
    Outcome,
    Permission,
    SessionUpdated,
    StopReason,
    ToolCall,
    ToolStatus,
    Usage,
)
from gateway.ports import Said
from gateway.speech import Scribe

from .results import block_image, block_text, result_of
from .wire import Prompted, Update

log = structlog.get_logger("dragoman.acp")

STOPS = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "max_turn_requests": StopReason.MAX_STEPS,
    "refusal": StopReason.REFUSAL,
    "cancelled": StopReason.INTERRUPTED,
}
UNTOLD = "The agent ended its turn without telling what came of this call."
DENIED = "Tool call denied"


class Work:
    """A tool call as far as the agent has told it."""

    def __init__(self) -> None:
        self.title = ""
        self.kind = ""
        self.status = ""
        self.input: dict[str, Any] = {}
        self.content: Any = None
        self.raw_output: Any = None
        self.call: ToolCall | None = None
        """What was said of it here, once it was."""
        self.printed = ""
        self.denied = False

    def take(self, update: Update) -> None:
        self.title, self.kind = update.title or self.title, update.kind or self.kind
        self.status = update.status or self.status
        if update.raw_input is not None and self.call is None:
            self.input = update.raw_input if isinstance(update.raw_input, dict) else {"input": update.raw_input}
        self.content = self.content if update.content is None else update.content
        self.raw_output = self.raw_output if update.raw_output is None else update.raw_output

    @property
    def has_begun(self) -> bool:
        """Whether its input can be taken for complete: work is being done."""
        return bool(self.content) or self.status not in ("", "pending")

    @property
    def result(self) -> Content:
        return result_of(self.content, self.raw_output)


class Hearing:
    """One turn of an agent's. A message ends where the first result comes; what is said after that is in the next.

    A call that waits to be begun is held: its input may still change, and a permission may be wanted for it.
    """

    def __init__(self, mint: Mint) -> None:
        self._scribe, self._mint = Scribe(mint), mint
        self._works: dict[str, Work] = {}
        self._speaking: tuple[BlockKind, str | None] | None = None

    def begin(self) -> list[Said]:
        """The agent was asked; its first word may be long in coming."""
        return self._scribe.begin()

    @property
    def holds(self) -> bool:
        """Whether a call with an input has not been told."""
        return any(work.call is None and work.input for work in self._works.values())

    def tell_held(self) -> list[Said]:
        """The agent has moved on, or takes its time: calls with an input are told as they are."""
        held = [work for work in self._works.values() if work.call is None and work.input]
        return [event for work in held for event in self._tell(work)]

    def feed(self, update: Update) -> list[Said]:
        match update.session_update:
            case "agent_message_chunk":
                return self._chunk(update, BlockKind.TEXT)
            case "agent_thought_chunk":
                return self._chunk(update, BlockKind.THINKING)
            case "tool_call" | "tool_call_update" if update.tool_call_id:
                return self._work(update)
            case "plan":
                return [*self.tell_held(), *self._block(self._scribe.data(_plan(update)))]
            case "session_info_update" if update.title:
                return [SessionUpdated(title=update.title)]
        return []

    # -- words ----------------------------------------------------------------------------------------------------

    def _chunk(self, update: Update, kind: BlockKind) -> list[Said]:
        said = self.tell_held()
        if (image := block_image(update.content)) is not None:
            return [*said, *self._block(self._scribe.image(image))]
        key, text = (kind, update.message_id), block_text(update.content)
        if not text:
            return said
        said += self._scribe.end_words() if key != self._speaking else []
        self._speaking = key
        return [*said, *self._scribe.words(key, text, kind)]

    def _block(self, said: list[Said]) -> list[Said]:
        self._speaking = None
        return said

    # -- work -----------------------------------------------------------------------------------------------------

    def _work(self, update: Update) -> list[Said]:
        work = self._works.setdefault(update.tool_call_id, Work())
        before = work.status
        work.take(update)
        said = self._tell(work) if work.has_begun else []
        if work.call is None:
            return said
        if work.status in ("completed", "failed"):
            del self._works[update.tool_call_id]
            return [*said, *self._return(work, work.call)]
        if work.status == "in_progress" and before != work.status:
            said += self._scribe.status(work.call.call_id, ToolStatus.RUNNING)
        return [*said, *self._print(work, work.call)]

    def _tell(self, work: Work, permission: Permission = Permission.ALLOW) -> list[Said]:
        """The call itself, once."""
        if work.call is not None:
            return []
        work.call = ToolCall(
            call_id=self._mint("call"), name=work.kind or "other", input=work.input, display_name=work.title or None,
            permission=permission,
        )
        ends = self._block(self._scribe.end_words())
        return [*ends, *self._scribe.whole_call(work.call.call_id, work.call)]

    def _print(self, work: Work, call: ToolCall) -> list[Said]:
        """What the tool has printed since; a text that was exchanged for another is left to the result."""
        text = result_of(work.content, None)
        if not isinstance(text, str) or not text.startswith(work.printed):
            return []
        fresh, work.printed = text[len(work.printed):], text
        return self._scribe.output(call.call_id, fresh)

    def _return(self, work: Work, call: ToolCall) -> list[Said]:
        failed = work.status == "failed"
        result = work.result or (DENIED if work.denied else "")
        ends = self._block(self._scribe.finish(StopReason.TOOL_USE))
        return [*ends, *self._scribe.returned(call.call_id, result, is_error=failed)]

    # -- permission -----------------------------------------------------------------------------------------------

    def wanted(self, update: Update) -> tuple[ToolCall, list[Said]]:
        """The call that the agent wants a permission for, and what is to be said of it first."""
        work = self._works.setdefault(update.tool_call_id, Work())
        work.take(update)
        said = self._tell(work, Permission.ASK)
        assert work.call is not None, "it was told just now"
        return work.call, said

    def pause(self, calls: list[ToolCall]) -> list[Said]:
        """People are about to be asked: no message stays open."""
        ends = self._block(self._scribe.finish(StopReason.TOOL_USE))
        waiting = [self._scribe.status(call.call_id, ToolStatus.AWAITING_INPUT) for call in calls]
        return [*ends, *(event for events in waiting for event in events)]

    def denied(self, call: ToolCall) -> None:
        """Nobody lets the agent do it; what comes of that is the agent's to tell."""
        for work in self._works.values():
            work.denied = work.denied or work.call is call

    # -- the end --------------------------------------------------------------------------------------------------

    def end(self, prompted: Prompted) -> list[Said]:
        """The agent's turn is over; whatever it left open is closed."""
        stop, usage = STOPS.get(prompted.stop_reason, StopReason.END_TURN), _usage(prompted)
        if prompted.stop_reason not in STOPS:
            log.warning("unknown stop reason", reason=prompted.stop_reason[:100])
        said = self._scribe.end_words()
        said += [event for work in self._works.values() for event in self._tell(work)]
        for work in self._works.values():
            if work.call is not None:
                content = work.result or (DENIED if work.denied else UNTOLD)
                said += self._scribe.returned(work.call.call_id, content, is_error=True)
        self._works = {}
        if not self._scribe.pen.in_message and (stop is not StopReason.END_TURN or usage != Usage()):
            said += self._scribe.begin()
        outcome = Outcome.INTERRUPTED if stop is StopReason.INTERRUPTED else Outcome.COMPLETED
        return [*said, *self._block(self._scribe.finish(stop, usage, outcome))]


def _plan(update: Update) -> DataPart:
    steps = [
        {"id": str(number), "title": entry.get("content"), "status": entry.get("status"),
         "priority": entry.get("priority")}
        for number, entry in enumerate(update.entries or (), 1)
    ]
    return DataPart(type="plan_status", content={"title": "Plan", "steps": steps})


def _usage(prompted: Prompted) -> Usage:
    spent = prompted.usage
    if spent is None:
        return Usage()
    return Usage(
        input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, thinking_tokens=spent.thought_tokens or 0,
        cache_read_tokens=spent.cached_read_tokens or 0, cache_write_tokens=spent.cached_write_tokens or 0,
    )
