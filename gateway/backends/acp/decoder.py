"""Decodes what an ACP agent sends in a turn: updates, requests for permission, and the result. No clock, no I/O."""

from difflib import unified_diff
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.tool_executor import CALL_DENIED
from gateway.client import StreamAssembler
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd

from .wire import PermissionParams, PromptResult, SessionUpdate

log = structlog.get_logger("dragoman.acp")
STOP_REASONS = {
    "end_turn": m.StopReason.END_TURN,
    "max_tokens": m.StopReason.MAX_TOKENS,
    "max_turn_requests": m.StopReason.MAX_STEPS,
    "refusal": m.StopReason.REFUSAL,
    "cancelled": m.StopReason.INTERRUPTED,
}
NO_RESULT_TEXT = "The agent ended its turn without telling what came of this call."


class ToolCallState:
    """A tool call as far as the agent has reported it."""

    def __init__(self) -> None:
        self.title = ""
        self.kind = ""
        self.status = ""
        self.input: dict[str, Any] = {}
        self.content: Any = None
        self.raw_output: object = None
        self.call: m.ToolCall | None = None
        """The call that was emitted, once it was."""
        self.printed = ""
        self.denied = False

    def take(self, update: SessionUpdate) -> None:
        self.title, self.kind = update.title or self.title, update.kind or self.kind
        self.status = update.status or self.status
        if update.raw_input is not None and self.call is None:
            self.input = update.raw_input if isinstance(update.raw_input, dict) else {"input": update.raw_input}
        self.content = self.content if update.content is None else update.content
        self.raw_output = self.raw_output if update.raw_output is None else update.raw_output

    @property
    def has_begun(self) -> bool:
        """Whether its input is complete: the call has started or ended."""
        return bool(self.content) or self.status not in ("", "pending")

    @property
    def result(self) -> m.Content:
        return tool_call_content(self.content, self.raw_output)


class AcpDecoder:
    """Decodes one turn. A message ends before the first result of its calls; later text is in the next message.

    The start of a call is held until the call runs: its input may still change, and the agent may ask permission.
    """

    def __init__(self, mint: Mint) -> None:
        self._assembler, self._mint = StreamAssembler(mint), mint
        self._works: dict[str, ToolCallState] = {}
        self._speaking: tuple[m.BlockKind, str | None] | None = None
        self._asks: dict[str, RemoteAsk] = {}
        """The open requests for permission, by their references."""

    @property
    def paused(self) -> bool:
        return bool(self._asks)

    def begin(self) -> list[BackendEvent]:
        """Start the message when the prompt is sent: the first update may take long."""
        return self._assembler.begin()

    @property
    def holds(self) -> bool:
        """Whether a call that has an input was not emitted yet."""
        return any(work.call is None and work.input for work in self._works.values())

    def release_held(self) -> list[BackendEvent]:
        """Emit the held calls that have an input: the agent has moved on, or takes its time."""
        held = [work for work in self._works.values() if work.call is None and work.input]
        return [event for work in held for event in self._emit_call(work)]

    def feed(self, frame: ParsedFrame) -> list[DecodedItem]:
        """The body of a frame is a `SessionUpdate`, `PermissionParams` or a `PromptResult`; its id names a request."""
        body = frame.body
        if isinstance(body, SessionUpdate):
            return [*self._update(body)]
        if isinstance(body, PermissionParams):
            return self._permission_requested(body.tool_call, frame.id)
        return self._prompted(body) if isinstance(body, PromptResult) else []

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """The agent reports what comes of a call that was denied."""
        self._asks.pop(asked.ref, None)
        call = m.call_of(asked.ask)
        if call is not None and not is_granted(answer):
            for work in self._works.values():
                work.denied = work.denied or (work.call is not None and work.call.call_id == call.call_id)

    def configure(self, settings: m.Settings) -> None:
        """The agent knows its tools; no update depends on the settings."""

    def on_reconnect(self) -> None:
        """The pipe to an agent cannot be resumed."""

    def end(self) -> list[DecodedItem]:
        return [*self._finish(m.StopReason.ERROR, m.Usage(), m.Outcome.FAILED)]

    def _update(self, update: SessionUpdate) -> list[BackendEvent]:
        match update.session_update:
            case "agent_message_chunk":
                return self._chunk(update, m.BlockKind.TEXT)
            case "agent_thought_chunk":
                return self._chunk(update, m.BlockKind.THINKING)
            case "tool_call" | "tool_call_update" if update.tool_call_id:
                return self._work(update)
            case "plan":
                return [*self.release_held(), *self._block(self._assembler.data(_plan(update)))]
            case "session_info_update" if update.title:
                return [m.SessionUpdated(title=update.title)]
        return []

    # -- words ----------------------------------------------------------------------------------------------------

    def _chunk(self, update: SessionUpdate, kind: m.BlockKind) -> list[BackendEvent]:
        events = self.release_held()
        if (image := block_image(update.content)) is not None:
            return [*events, *self._block(self._assembler.image(image))]
        key, text = (kind, update.message_id), block_text(update.content)
        if not text:
            return events
        events += self._assembler.end_texts() if key != self._speaking else []
        self._speaking = key
        return [*events, *self._assembler.text_delta(key, text, kind)]

    def _block(self, events: list[BackendEvent]) -> list[BackendEvent]:
        self._speaking = None
        return events

    # -- work -----------------------------------------------------------------------------------------------------

    def _work(self, update: SessionUpdate) -> list[BackendEvent]:
        work = self._works.setdefault(update.tool_call_id, ToolCallState())
        before = work.status
        work.take(update)
        events = self._emit_call(work) if work.has_begun else []
        if work.call is None:
            return events
        if work.status in ("completed", "failed"):
            del self._works[update.tool_call_id]
            return [*events, *self._return(work, work.call)]
        if work.status == "in_progress" and before != work.status:
            events += self._assembler.status(work.call.call_id, m.ToolStatus.RUNNING)
        return [*events, *self._print(work, work.call)]

    def _emit_call(self, work: ToolCallState, permission: m.Permission = m.Permission.ALLOW) -> list[BackendEvent]:
        """Emit the call, once."""
        if work.call is not None:
            return []
        work.call = m.ToolCall(
            call_id=self._mint("call"), name=work.kind or "other", input=work.input, display_name=work.title or None,
            permission=permission,
        )
        ends = self._block(self._assembler.end_texts())
        return [*ends, *self._assembler.whole_call(work.call.call_id, work.call)]

    def _print(self, work: ToolCallState, call: m.ToolCall) -> list[BackendEvent]:
        """Emit the new output of the tool; if earlier output was replaced, only the result has it."""
        text = tool_call_content(work.content, None)
        if not isinstance(text, str) or not text.startswith(work.printed):
            return []
        fresh, work.printed = text[len(work.printed):], text
        return self._assembler.output(call.call_id, fresh)

    def _return(self, work: ToolCallState, call: m.ToolCall) -> list[BackendEvent]:
        failed = work.status == "failed"
        result = work.result or (CALL_DENIED if work.denied else "")
        ends = self._block(self._assembler.finish(m.StopReason.TOOL_USE))
        return [*ends, *self._assembler.returned(call.call_id, result, is_error=failed)]

    # -- permission -----------------------------------------------------------------------------------------------

    def _permission_requested(self, update: SessionUpdate, ref: str) -> list[DecodedItem]:
        """The ask about a call, after the call itself."""
        work = self._works.setdefault(update.tool_call_id, ToolCallState())
        work.take(update)
        events = self._emit_call(work, m.Permission.ASK)
        assert work.call is not None, "it was emitted just now"
        call = replace(work.call, permission=m.Permission.ASK)
        ask = m.PermissionAsk(call=call, description=call.display_name or call.name)
        self._asks[ref] = RemoteAsk(ask=ask, ref=ref)
        return [*events, self._asks[ref]]

    def suspend(self) -> list[BackendEvent]:
        """End the message before people are asked about all open requests."""
        ends = self._block(self._assembler.finish(m.StopReason.TOOL_USE))
        calls = [call for one in self._asks.values() if (call := m.call_of(one.ask)) is not None]
        waiting = [self._assembler.status(call.call_id, m.ToolStatus.AWAITING_INPUT) for call in calls]
        return [*ends, *(event for events in waiting for event in events)]

    # -- the end --------------------------------------------------------------------------------------------------

    def _prompted(self, result: PromptResult) -> list[DecodedItem]:
        """The agent's turn has ended."""
        stop = STOP_REASONS.get(result.stop_reason, m.StopReason.END_TURN)
        if result.stop_reason not in STOP_REASONS:
            log.warning("unknown_stop_reason", reason=result.stop_reason[:100])
        outcome = m.Outcome.INTERRUPTED if stop is m.StopReason.INTERRUPTED else m.Outcome.COMPLETED
        return [*self._finish(stop, _usage(result), outcome), RemoteTurnEnd(stop_reason=stop, outcome=outcome)]

    def _finish(self, stop: m.StopReason, usage: m.Usage, outcome: m.Outcome) -> list[BackendEvent]:
        """End what is open."""
        events = self._assembler.end_texts()
        events += [event for work in self._works.values() for event in self._emit_call(work)]
        for work in self._works.values():
            if work.call is not None:
                content = work.result or (CALL_DENIED if work.denied else NO_RESULT_TEXT)
                events += self._assembler.returned(work.call.call_id, content, is_error=True)
        self._works, self._asks = {}, {}
        if not self._assembler.writer.in_message and (stop is not m.StopReason.END_TURN or usage != m.Usage()):
            events += self._assembler.begin()
        return [*events, *self._block(self._assembler.finish(stop, usage, outcome))]


def is_granted(answer: m.Answer) -> bool | None:
    """Whether the answer grants the permission; None if nobody will answer."""
    return answer.granted if isinstance(answer, m.DecidePermission) else None


def _plan(update: SessionUpdate) -> m.DataPart:
    steps = [
        {"id": str(number), "title": entry.get("content"), "status": entry.get("status"),
         "priority": entry.get("priority")}
        for number, entry in enumerate(update.entries or (), 1)
    ]
    return m.DataPart(type="plan_status", content={"title": "Plan", "steps": steps})


def _usage(prompted: PromptResult) -> m.Usage:
    spent = prompted.usage
    if spent is None:
        return m.Usage()
    return m.Usage(
        input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, thinking_tokens=spent.thought_tokens or 0,
        cache_read_tokens=spent.cached_read_tokens or 0, cache_write_tokens=spent.cached_write_tokens or 0,
    )


MAX_DIFF_CHARS = 200_000
"""Longer texts are not compared line by line."""


def tool_call_content(content: object, raw_output: object) -> m.Content:
    """The content of a call, or else its raw output."""
    parts = [part for piece in content or () if (part := _part(piece)) is not None] if isinstance(content, list) else []
    if any(isinstance(part, m.ImagePart) for part in parts):
        return tuple(parts)
    words = "\n".join(part.text for part in parts if isinstance(part, m.TextPart))
    return words or _raw_as_text(raw_output)


def block_text(block: object) -> str | None:
    """The text of a content block; None if it has none."""
    if not isinstance(block, dict):
        return None
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "resource_link":
            return f"[{block.get('title') or block.get('name') or 'link'}]({block.get('uri')})"
        case "resource" if isinstance(resource := block.get("resource"), dict) and "text" in resource:
            return str(resource["text"])
    return None


def block_image(block: object) -> m.ImagePart | None:
    """The image of a content block, if it is one."""
    if not isinstance(block, dict) or block.get("type") != "image":
        return None
    media_type = str(block.get("mimeType") or "image/png")
    if data := block.get("data"):
        return m.ImagePart(url=f"data:{media_type};base64,{data}", media_type=media_type)
    return m.ImagePart(url=str(block["uri"]), media_type=media_type) if block.get("uri") else None


def _part(piece: Any) -> m.AnyPart | None:
    if not isinstance(piece, dict):
        return None
    match piece.get("type"):
        case "content":
            image, text = block_image(piece.get("content")), block_text(piece.get("content"))
            return image or (None if text is None else m.TextPart(text=text))
        case "diff":
            return m.TextPart(
                text=_diff(str(piece.get("path")), piece.get("oldText") or "", piece.get("newText") or "")
            )
    return None


def _diff(path: str, old: str, new: str) -> str:
    if len(old) + len(new) > MAX_DIFF_CHARS:
        return f"{path} was changed"
    lines = unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
    return "\n".join(lines) or f"{path} was not changed"


def _raw_as_text(raw: object) -> str:
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()
