"""A turn whose last event never came: the history of its server tells whether the turn is over, and what is missing."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from gateway.model import ToolUsePart, text_of
from gateway.upstream import Frame

from .hearing import name_of
from .hearing_wire import MessageBody, content_of

TEXT, CALL, RESULT = "text_delta", "tool_call", "tool_result"
Piece = tuple[str, str, Frame | None]
"""The kind of a piece, its text or the id of its call, and the frame that tells it; a text has none."""


class Transcript:
    """What was heard of one POST as far as histories have it: texts, calls and results, in order."""

    def __init__(self) -> None:
        self._heard: list[Piece] = []

    def hear(self, frame: Frame) -> None:
        name, body = name_of(frame), frame.body if isinstance(frame.body, dict) else {}
        if name in ("text", TEXT):
            self._heard.append((TEXT, str(body.get("delta", body.get("text", ""))), None))
        elif name in (CALL, RESULT):
            self._heard.append((name, str(body.get("toolCallId")), frame))

    @property
    def pieces(self) -> list[Piece]:
        return _joined(self._heard)


def rest_of_turn(messages: Sequence[MessageBody], heard: Transcript, answered: Sequence[str]) -> list[Frame] | None:
    """The frames that a stream has kept back, up to its `turn_stop`; None if the history has no finished turn.

    The turn began with the last message of a person or, if it was continued, with the results of the `answered` calls.
    It is over if the agent has the last word. What was heard must be what the history has, as far as it was heard.
    """
    said = _since(messages, answered)
    if not said or said[-1].role != "assistant":
        return None
    known = _joined(piece for message in said for piece in _of_message(message))
    told = [piece for piece in heard.pieces if piece[0] != RESULT or piece[1] not in answered]
    if (missing := _missing(known, told)) is None:
        return None
    back = {piece[1] for piece in known if piece[0] == RESULT}
    is_waiting = any(piece[0] == CALL and piece[1] not in back for piece in known)
    frames = [Frame(TEXT, {"delta": text}) if frame is None else frame for _, text, frame in missing]
    return [*frames, Frame("turn_stop", {"stopReason": "tool_use" if is_waiting else "end_turn"})]


def _since(messages: Sequence[MessageBody], answered: Sequence[str]) -> Sequence[MessageBody]:
    """What was said after the messages that started or continued the turn; nothing if they are not all there."""
    results = [place for place, message in enumerate(messages) if message.tool_call_id in answered]
    if answered:
        return messages[results[-1] + 1:] if len(results) == len(answered) else ()
    people = [place for place, message in enumerate(messages) if message.role == "user"]
    return messages[people[-1] + 1:] if people else ()


def _missing(known: Sequence[Piece], heard: Sequence[Piece]) -> list[Piece] | None:
    """What the history has beyond what was heard; None if something else was heard."""
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


def _of_message(message: MessageBody) -> Iterator[Piece]:
    if message.role == "tool":
        body = {"toolCallId": message.tool_call_id, "content": message.content}
        yield RESULT, message.tool_call_id or "", Frame(RESULT, body)
    elif message.role == "assistant":
        content = content_of(message.content)
        for part in (content,) if isinstance(content, str) else content:
            if isinstance(part, ToolUsePart):
                call = part.call
                given = {"toolCallId": call.call_id, "name": call.name, "input": call.input}
                yield CALL, call.call_id, Frame(CALL, given)
            else:
                yield TEXT, part if isinstance(part, str) else text_of((part,)), None


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Texts that follow each other are one text: a stream does not tell where a message ends."""
    joined: list[Piece] = []
    for kind, group in groupby(pieces, key=lambda piece: piece[0]):
        if kind != TEXT:
            joined += group
        elif text := "".join(piece[1] for piece in group):
            joined.append((TEXT, text, None))
    return joined
