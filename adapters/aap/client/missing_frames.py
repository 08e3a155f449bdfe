"""The frames that a broken stream lacks, computed from the history of the server."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import gateway.model as m
from adapters.aap.bodies import MessageBody
from mappings.language import DecodedFrame, UnreadableBody

from .decoder import TurnFrame, frame_decoder

TEXT, CALL, RESULT = "text", "call", "result"
KINDS = {
    "block.delta.text": TEXT, "whole.text": TEXT, "block.ended.tool_use": CALL, "tool.returned": RESULT,
}
"""The kind of a piece by the cue that says it."""
Piece = tuple[str, str, DecodedFrame | None]
"""The kind of a piece, its text or the id of its call, and its frame; a text has no frame."""


class ReceivedPieces:
    """The texts, calls and results that were received of one POST, in order, as histories have them."""

    def __init__(self) -> None:
        self._received: list[Piece] = []

    def add(self, frame: TurnFrame) -> TurnFrame:
        """Note the frame; return it decoded, so that it is decoded once, or unchanged if it cannot be decoded."""
        try:
            found = frame if isinstance(frame, DecodedFrame) else frame_decoder().decode(frame.name, frame.body)
        except UnreadableBody:
            return frame
        if found is None:
            return frame
        kind, bindings = KINDS.get(found.cue), found.bindings
        if kind == TEXT:
            self._received.append((TEXT, bindings.get("delta", bindings.get("text", "")), None))
        elif kind is not None:
            self._received.append((kind, bindings["call_id"] if kind == RESULT else bindings["call"]["call_id"], found))
        return found

    @property
    def pieces(self) -> list[Piece]:
        return _joined_texts(self._received)


def missing_frames(
    messages: Sequence[MessageBody], received: ReceivedPieces, answered: Sequence[str]
) -> list[DecodedFrame] | None:
    """The frames that a stream lacks, up to its `turn_stop`; None if the history has no finished turn.

    The turn began with the last message of a person or, if it was continued, with the results of the `answered` calls.
    It is over if the last message is the agent's. The received frames must be the beginning of the turn in the history.
    """
    stored = _messages_of_turn(messages, answered)
    if not stored or stored[-1].role != m.Role.ASSISTANT:
        return None
    known = _joined_texts(piece for message in stored for piece in _pieces_of_message(message))
    pieces = [piece for piece in received.pieces if piece[0] != RESULT or piece[1] not in answered]
    if (missing := _missing_pieces(known, pieces)) is None:
        return None
    back = {piece[1] for piece in known if piece[0] == RESULT}
    is_waiting = any(piece[0] == CALL and piece[1] not in back for piece in known)
    frames = [DecodedFrame("block.delta.text", {"delta": text}) if frame is None else frame
              for _, text, frame in missing]
    return [*frames, WAITS if is_waiting else ENDS]


WAITS = DecodedFrame("turn.suspended", {})
ENDS = DecodedFrame("turn.ended", {"stop_reason": m.StopReason.END_TURN})


def _messages_of_turn(messages: Sequence[MessageBody], answered: Sequence[str]) -> Sequence[MessageBody]:
    """The messages after those that started or continued the turn; empty if the latter are not all there."""
    results = [place for place, message in enumerate(messages) if message.call_id in answered]
    if answered:
        return messages[results[-1] + 1:] if len(results) == len(answered) else ()
    people = [place for place, message in enumerate(messages) if message.role == m.Role.USER]
    return messages[people[-1] + 1:] if people else ()


def _missing_pieces(known: Sequence[Piece], received: Sequence[Piece]) -> list[Piece] | None:
    """The part of the history that follows the received frames; None if the frames do not fit the history."""
    is_other = any(mine[:2] != theirs[:2] for mine, theirs in zip(received[:-1], known, strict=False))
    if len(received) > len(known) or is_other:
        return None
    if not received:
        return list(known)
    (kind, value, _), (known_kind, known_value, _) = received[-1], known[len(received) - 1]
    rest = list(known[len(received):])
    if (kind, value) == (known_kind, known_value):
        return rest
    is_begun = kind == known_kind == TEXT and known_value.startswith(value)
    return [(TEXT, known_value[len(value):], None), *rest] if is_begun else None


def _pieces_of_message(message: MessageBody) -> Iterator[Piece]:
    if message.role == m.Role.TOOL:
        yield RESULT, message.call_id or "", result_frame(message)
    elif message.role == m.Role.ASSISTANT:
        content = message.content or ""
        for part in (content,) if isinstance(content, str) else content:
            if isinstance(part, m.ToolUsePart):
                yield CALL, part.call.call_id, call_frame(part.call)
            else:
                yield TEXT, part if isinstance(part, str) else m.text_of((part,)), None


def result_frame(message: MessageBody) -> DecodedFrame:
    return DecodedFrame("tool.returned", {"call_id": message.call_id, "content": message.content})


def call_frame(call: m.ToolCall) -> DecodedFrame:
    return DecodedFrame(
        "block.ended.tool_use", {"call": {"call_id": call.call_id, "name": call.name, "input": call.input}})


def _joined_texts(pieces: Iterable[Piece]) -> list[Piece]:
    """Texts that follow each other are one text: a stream does not show where a message ends."""
    joined: list[Piece] = []
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        if kind != TEXT:
            joined += group
        elif text := "".join(piece[1] for piece in group):
            joined.append((TEXT, text, None))
    return joined
