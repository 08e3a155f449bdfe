"""What a stream that was cut lacks of its turn, by the history of the server."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import gateway.model as m
from gateway.ports import ParsedFrame

from .decoder import frame_decoder
from .readers import MessageBody, read_content

TEXT, CALL, RESULT = "text_delta", "tool_call", "tool_result"
Piece = tuple[str, str, ParsedFrame | None]
"""The kind of a piece, its text or the id of its call, and its frame; a text has none."""


class ReceivedPieces:
    """The texts, calls and results that were received of one POST, in order, as histories have them."""

    def __init__(self) -> None:
        self._heard: list[Piece] = []

    def add(self, frame: ParsedFrame) -> None:
        found = frame_decoder().find(frame.name, frame.body)
        name, body = found.wire if found else "", frame.body if isinstance(frame.body, dict) else {}
        if name in ("text", TEXT):
            self._heard.append((TEXT, str(body.get("delta", body.get("text", ""))), None))
        elif name in (CALL, RESULT):
            self._heard.append((name, str(body.get("toolCallId")), frame))

    @property
    def pieces(self) -> list[Piece]:
        return _joined_texts(self._heard)


def missing_frames(
    messages: Sequence[MessageBody], heard: ReceivedPieces, answered: Sequence[str]
) -> list[ParsedFrame] | None:
    """The frames that a stream lacks, up to its `turn_stop`; None if the history has no finished turn.

    The turn began with the last message of a person or, if it was continued, with the results of the `answered` calls.
    It is over if the last message is the agent's. What was received must be the beginning of what the history has.
    """
    said = _messages_of_turn(messages, answered)
    if not said or said[-1].role != "assistant":
        return None
    known = _joined_texts(piece for message in said for piece in _pieces_of_message(message))
    told = [piece for piece in heard.pieces if piece[0] != RESULT or piece[1] not in answered]
    if (missing := _missing_pieces(known, told)) is None:
        return None
    back = {piece[1] for piece in known if piece[0] == RESULT}
    is_waiting = any(piece[0] == CALL and piece[1] not in back for piece in known)
    frames = [ParsedFrame(TEXT, {"delta": text}) if frame is None else frame for _, text, frame in missing]
    return [*frames, ParsedFrame("turn_stop", {"stopReason": "tool_use" if is_waiting else "end_turn"})]


def _messages_of_turn(messages: Sequence[MessageBody], answered: Sequence[str]) -> Sequence[MessageBody]:
    """The messages after those that started or continued the turn; empty if the latter are not all there."""
    results = [place for place, message in enumerate(messages) if message.tool_call_id in answered]
    if answered:
        return messages[results[-1] + 1:] if len(results) == len(answered) else ()
    people = [place for place, message in enumerate(messages) if message.role == "user"]
    return messages[people[-1] + 1:] if people else ()


def _missing_pieces(known: Sequence[Piece], heard: Sequence[Piece]) -> list[Piece] | None:
    """What the history has beyond what was received; None if something else was received."""
    if len(heard) > len(known) or any(mine[:2] != theirs[:2] for mine, theirs in zip(heard[:-1], known, strict=False)):
        return None
    if not heard:
        return list(known)
    (kind, value, _), (known_kind, known_value, _) = heard[-1], known[len(heard) - 1]
    rest = list(known[len(heard):])
    if (kind, value) == (known_kind, known_value):
        return rest
    is_begun = kind == known_kind == TEXT and known_value.startswith(value)
    return [(TEXT, known_value[len(value):], None), *rest] if is_begun else None


def _pieces_of_message(message: MessageBody) -> Iterator[Piece]:
    if message.role == "tool":
        body = {"toolCallId": message.tool_call_id, "content": message.content}
        yield RESULT, message.tool_call_id or "", ParsedFrame(RESULT, body)
    elif message.role == "assistant":
        content = read_content(message.content)
        for part in (content,) if isinstance(content, str) else content:
            if isinstance(part, m.ToolUsePart):
                call = part.call
                given = {"toolCallId": call.call_id, "name": call.name, "input": call.input}
                yield CALL, call.call_id, ParsedFrame(CALL, given)
            else:
                yield TEXT, part if isinstance(part, str) else m.text_of((part,)), None


def _joined_texts(pieces: Iterable[Piece]) -> list[Piece]:
    """Texts that follow each other are one text: a stream does not show where a message ends."""
    joined: list[Piece] = []
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        if kind != TEXT:
            joined += group
        elif text := "".join(piece[1] for piece in group):
            joined.append((TEXT, text, None))
    return joined
