"""Frames of an AAP server in, canonical events out. No clock, no socket."""

import re
from collections.abc import Iterable
from functools import cache

import gateway.model as m
from adapters.aap.asks import WireAnswer, wire_answer
from gateway.client import StreamAssembler, cue_handlers, decodes, read_names
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import BackendEvent, DecodedItem, ParsedFrame, RemoteAsk, RemoteTurnEnd
from gateway.ports import Decoder as DecoderPort
from mappings.language import Bindings, DecodedFrame, FrameDecoder, UnreadableBody

from .readers import AAP, NO_TOOLS_KNOWN, CallFrame, SessionTools, media_type_of, session_tools_of, with_media_types

TurnFrame = ParsedFrame | DecodedFrame
"""A frame of a server, or its decoded form if it was computed from the history."""
IMAGE_MARKDOWN = re.compile(r"!\[image\]\((https?://[^\s()]+|data:image/[^\s()]+)\)")
"""How an image is written; a block of text that is nothing else is an image."""
STARTED = "turn.started"


class Decoder(DecoderPort):
    """Decodes the stream of one session. AAP does not frame messages: one lasts until a result, or the turn's end.

    An answer (`settle`) becomes the result of its call: at once if the client ran the call, because the server sends
    no result of it; otherwise when the server goes on and has sent no result.
    """

    def __init__(self, mint: Mint, toolbox: SessionTools = NO_TOOLS_KNOWN) -> None:
        self._toolbox = toolbox
        self._assembler = StreamAssembler(mint)
        self._words: m.BlockKind | None = None
        self._loose: dict[str, m.AnyAsk] = {}
        self._given: dict[str, WireAnswer] = {}
        self._over = False
        self._paused = False

    @property
    def paused(self) -> bool:
        return self._paused

    def feed(self, frame: TurnFrame) -> list[DecodedItem]:
        if isinstance(frame, DecodedFrame):
            return [] if self._over and frame.cue != STARTED else [*HANDLERS[frame.cue](self, frame.bindings)]
        found = frame_decoder().find(frame.name, frame.body)
        if found is None or (self._over and found.cue != STARTED):
            return []
        try:
            return [*HANDLERS[found.cue](self, found.bindings())]
        except UnreadableBody as error:
            raise BackendFailed(f"a {found.wire} of the server cannot be understood: {error}") from None

    def end(
        self, stop_reason: m.StopReason = m.StopReason.ERROR, outcome: m.Outcome = m.Outcome.FAILED,
    ) -> list[DecodedItem]:
        self._over = True
        self._words = None
        return [*self._assembler.finish(stop_reason, outcome=outcome)]

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        call = m.call_of(asked.ask)
        if call is not None:
            self.recall([call])
            self._given[call.call_id] = wire_answer(asked.ask, answer)

    def configure(self, settings: m.Settings) -> None:
        """Take the tools from the settings of the session, if nothing else is known of the tools."""
        self._toolbox = session_tools_of(m.AgentCard(name="", tools=tuple(
            m.AgentTool(spec=m.ToolSpec(name=name), permission=permission)
            for name, permission in (settings.tools or {}).items()
        )), settings)

    def recall(self, calls: Iterable[m.ToolCall]) -> None:
        """Take in calls that were made before this decoder began, and have not returned."""
        for call in calls:
            self._assembler.open_calls.setdefault(call.call_id, call)

    # -- the turn -------------------------------------------------------------------------------------------------

    @decodes(STARTED)
    def _start(self) -> list[BackendEvent]:
        self._over = self._paused = False
        self._loose.clear()
        calls = self._assembler.open_calls
        return self._give_back(
            call_id for call_id in self._given if call_id in calls and calls[call_id].origin is m.ToolOrigin.CLIENT
        )

    @decodes("turn.ended")
    def _stop(self, stop_reason: m.StopReason | str) -> list[DecodedItem]:
        if not isinstance(stop_reason, m.StopReason) or stop_reason is m.StopReason.ERROR:
            is_known = isinstance(stop_reason, m.StopReason)
            unknown = "" if is_known else f" ({stop_reason[:40]!r} is no reason that AAP knows)"
            return self._fail(f"The server ended the turn with an error and did not say which{unknown}; its log may.")
        events = [*self._go_on(), *self._end_words(), *self._assembler.finish(stop_reason)]
        self._forget()
        return [*events, RemoteTurnEnd(stop_reason=stop_reason)]

    def _fail(self, why: str) -> list[DecodedItem]:
        events = [*self._go_on(), *self._end_words()]
        events += self._assembler.finish(m.StopReason.ERROR, outcome=m.Outcome.FAILED)
        self._forget()
        fault = m.Fault(code=m.FaultCode.BACKEND, message=why)
        return [*events, RemoteTurnEnd(stop_reason=m.StopReason.ERROR, outcome=m.Outcome.FAILED, fault=fault)]

    @decodes("turn.suspended")
    def _wait(self) -> list[DecodedItem]:
        """End the message, and ask about the calls that the server left open and that have no answer yet."""
        events = self._go_on()
        left = [call for call in self._assembler.open_calls.values() if call.call_id not in self._given]
        asks = self._toolbox.asks(left, is_all=not self._loose)
        asked = [RemoteAsk(ask=ask, ref=call.call_id) for call, ask in asks]
        asked += [RemoteAsk(ask=ask, ref=ref) for ref, ask in self._loose.items()]
        if not asked:
            return [*events, *self._fail("The server waits for the result of a tool, and has called none.")]
        self._over = self._paused = True
        events += [
            *self._end_words(),
            *self._assembler.finish(m.StopReason.TOOL_USE if asks else m.StopReason.NEEDS_INPUT),
        ]
        for call, _ in asks:
            events += self._assembler.status(call.call_id, m.ToolStatus.AWAITING_INPUT)
        return [*events, *asked]

    def _forget(self) -> None:
        """Forget the open calls of a turn that is over: they cannot return any more."""
        self._over, self._paused = True, False
        self._assembler.open_calls.clear()
        self._loose.clear()
        self._given.clear()

    # -- words ----------------------------------------------------------------------------------------------------

    @decodes("block.delta.text")
    def _text(self, delta: str) -> list[DecodedItem]:
        found = IMAGE_MARKDOWN.fullmatch(delta)
        if found is None:
            return self._grow(delta, m.BlockKind.TEXT)
        image = m.ImagePart(url=found[1], media_type=media_type_of(found[1]))
        return [*self._go_on(), *self._end_words(), *self._assembler.image(image)]

    @decodes("block.delta.thinking")
    def _thinking(self, delta: str) -> list[DecodedItem]:
        return self._grow(delta, m.BlockKind.THINKING)

    @decodes("whole.text")
    def _whole_text(self, text: str) -> list[DecodedItem]:
        return [*self._end_words(), *self._text(text), *self._end_words()]

    @decodes("whole.thinking")
    def _whole_thinking(self, text: str) -> list[DecodedItem]:
        return [*self._end_words(), *self._thinking(text), *self._end_words()]

    def _grow(self, delta: str, kind: m.BlockKind) -> list[DecodedItem]:
        if not delta:
            return []
        events = [*self._go_on(), *(self._end_words() if self._words is not kind else [])]
        self._words = kind
        return [*events, *self._assembler.text_delta(kind, delta, kind)]

    def _end_words(self) -> list[BackendEvent]:
        self._words = None
        return self._assembler.end_texts()

    # -- calls ----------------------------------------------------------------------------------------------------

    @decodes("block.ended.tool_use")
    def _call(self, call: Bindings) -> list[DecodedItem]:
        frame = CallFrame(tool_call_id=call["call_id"], name=call["name"], input=call["input"])
        if frame.tool_call_id in self._assembler.open_calls or frame.tool_call_id in self._loose:
            return self._fail("The server made two calls with one id, so their answers cannot be distinguished.")
        ask = self._toolbox.ask_without_call(frame)
        if ask is not None:
            self._loose[frame.tool_call_id] = ask
            return []
        before = [*self._go_on(), *self._end_words()]
        return [*before, *self._assembler.whole_call(frame.tool_call_id, self._toolbox.call(frame))]

    @decodes("tool.returned")
    def _result(self, call_id: str, content: m.Content | None) -> list[DecodedItem]:
        content = with_media_types(content or "")
        self._loose.pop(call_id, None)
        if call_id not in self._assembler.open_calls:
            return []
        answer = self._given.pop(call_id, None)
        is_error = answer is not None and answer.is_error
        return [*self._rest(), *self._assembler.returned(call_id, content, is_error=is_error)]

    def _rest(self) -> list[BackendEvent]:
        """End the message, because a call returns."""
        ends = self._end_words()
        return [
            *ends,
            *self._assembler.finish(m.StopReason.TOOL_USE if self._assembler.writer.calls else m.StopReason.END_TURN),
        ]

    def _go_on(self) -> list[BackendEvent]:
        """The server goes on: return the answers to its calls as their results, but for granted permissions."""
        if not self._given:
            return []
        return self._give_back(call_id for call_id, given in self._given.items() if given.granted is not True)

    def _give_back(self, call_ids: Iterable[str]) -> list[BackendEvent]:
        events: list[BackendEvent] = []
        for call_id in list(call_ids):
            given = self._given.pop(call_id)
            events += self._rest()
            events += self._assembler.returned(call_id, given.content, is_error=given.is_error)
        return events


HANDLERS = cue_handlers(Decoder)


@cache
def frame_decoder() -> FrameDecoder:
    """The frames of AAP as the table reads them; what a deployment has changed of it is not what others write."""
    return AAP.frames(read_names(HANDLERS))
