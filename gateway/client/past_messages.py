"""Makes the items of a turn from a stored message of a server: its blocks, whole, and the results of its calls."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

import gateway.model as m
from gateway.ids import Mint
from gateway.ports import DecodedItem, PastItem, PastTurn

from .event_writer import NO_USAGE

BLOCK_KINDS: dict[type[object], m.BlockKind] = {
    m.TextPart: m.BlockKind.TEXT, m.ThinkingPart: m.BlockKind.THINKING, m.ToolUsePart: m.BlockKind.TOOL_USE,
    m.ImagePart: m.BlockKind.IMAGE, m.DataPart: m.BlockKind.DATA,
}


class PastMessage(Struct, frozen=True, kw_only=True):
    """One message of the agent as a server has stored it."""

    content: m.Content
    message_id: str | None = None
    at: float | None = None
    model: str | None = None
    outcome: m.Outcome = m.Outcome.COMPLETED
    usage: m.Usage = NO_USAGE

    @property
    def calls(self) -> list[m.ToolCall]:
        return [part.call for part in m.parts_of(self.content) if isinstance(part, m.ToolUsePart)]


def message_items(message: PastMessage, mint: Mint) -> list[PastItem]:
    """The items of a whole message."""
    message_id = message.message_id or mint("msg")
    items: list[DecodedItem] = [m.MessageStarted(message_id=message_id, model=message.model)]
    for part in m.parts_of(message.content):
        items += _block(part, message_id, mint)
    stop = m.StopReason.TOOL_USE if message.calls else m.StopReason.END_TURN
    items.append(m.MessageEnded(
        message_id=message_id, outcome=message.outcome, usage=message.usage,
        stop_reason=STOP_REASONS.get(message.outcome, stop),
    ))
    return [PastItem(item, message.at) for item in items]


STOP_REASONS = {m.Outcome.FAILED: m.StopReason.ERROR, m.Outcome.INTERRUPTED: m.StopReason.INTERRUPTED}


def _block(part: m.AnyPart, message_id: str, mint: Mint) -> list[DecodedItem]:
    """A block in one piece; a file that an agent has sent becomes its address in words."""
    if isinstance(part, m.FilePart):
        part = m.TextPart(text=f"[{part.name}]({part.url or ''})")
    kind, block_id = BLOCK_KINDS[type(part)], mint("blk")
    call = part.call if isinstance(part, m.ToolUsePart) else None
    text = part.text if isinstance(part, m.TextPart | m.ThinkingPart) else None
    delta = text if call is None else msgspec.json.encode(call.input).decode()
    begun = None if call is None else msgspec.structs.replace(call, input={})
    deltas = [m.BlockDelta(block_id=block_id, message_id=message_id, kind=kind, delta=delta)] if delta else []
    return [
        m.BlockStarted(block_id=block_id, message_id=message_id, kind=kind, call=begun), *deltas,
        m.BlockEnded(
            block_id=block_id, message_id=message_id, kind=kind, text=text, call=call,
            signature=part.signature if isinstance(part, m.ThinkingPart) else None,
            image=part if isinstance(part, m.ImagePart) else None, data=part if isinstance(part, m.DataPart) else None,
        ),
    ]


class PastTurns:
    """Puts items into turns: a message of a person begins one, and so does what follows the end of one."""

    def __init__(self) -> None:
        self.turns: list[PastTurn] = []
        self._turn_id: str | None = None
        self._items: list[PastItem] = []
        self._calls: dict[str, m.ToolCall] = {}

    def begin(self, turn_id: str | None = None) -> None:
        """End the turn before, if there is one."""
        if self._items:
            self.turns.append(PastTurn(turn_id=self._turn_id, items=tuple(self._items)))
        self._turn_id, self._items, self._calls = turn_id, [], {}

    def name(self, turn_id: str | None) -> None:
        """Name the turn, whose name the server tells only after its first message; another name begins another turn."""
        if turn_id is not None and self._turn_id not in (None, turn_id):
            self.begin()
        self._turn_id = turn_id or self._turn_id

    def add(self, items: Iterable[PastItem]) -> None:
        self._items += items

    def add_message(self, message: PastMessage, mint: Mint) -> None:
        self.add(message_items(message, mint))
        self._calls.update((call.call_id, call) for call in message.calls)

    def add_result(self, call_id: str, content: m.Content, at: float | None, *, is_error: bool = False) -> bool:
        """The result of a call; False if this turn has no such call that is open."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return False
        result = m.ToolReturned(call_id=call_id, content=content, is_error=is_error, origin=call.origin)
        self.add([PastItem(result, at)])
        return True

    @property
    def open_calls(self) -> int:
        """How many calls of the turn have no result."""
        return len(self._calls)

    def end(self) -> Sequence[PastTurn]:
        self.begin()
        return self.turns
