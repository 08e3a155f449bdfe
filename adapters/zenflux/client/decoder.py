"""Frames of a ZenFlux server in, from a socket or an event stream, canonical events out. No clock, no socket."""

from collections.abc import Sequence
from typing import Any

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk

from .block_decoder import check_frame
from .readers import members, text
from .run_decoder import RunDecoder

WITHOUT_ENVELOPE = ("notification",)
"""Events whose payload has no envelope."""
OUTSIDE_RUNS = ("tick", "ping", "notification")
"""Events that belong to no run."""


class Decoder:
    """The reverse of the projector, for frames of a socket and for the data of server-sent events.

    Runs follow one another; a frame of a run that has ended is ignored.
    """

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._run = RunDecoder(mint, "")

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        if not isinstance(frame.body, dict):
            raise BackendFailed("the server sent a frame that is no object")
        envelope = envelope_of(frame.body)
        if envelope is None:
            return []
        kind = text(envelope.get("type")) or text(frame.body.get("event")) or frame.name
        seq = seq_of(frame.body)
        if kind in OUTSIDE_RUNS:
            return self._run.feed(kind, envelope if kind in WITHOUT_ENVELOPE else {}, seq)
        run_id, data = text(envelope.get("session_id")), _data(kind, envelope)
        if not self._run.over or run_id not in ("", self._run.run_id):
            check_frame(kind, data)  # a refused frame changes nothing, so that open blocks can still be ended
        changed = self._change_run(kind, run_id)
        return [*changed, *self._run.feed(kind, data, seq)]

    def end(self) -> Sequence[DecodedItem]:
        return self._run.end()

    @property
    def paused(self) -> bool:
        return self._run.paused

    def on_answer(self, asked: RemoteAsk, answer: m.Answer) -> None:
        """The frames of the server show what becomes of an answer."""

    def configure(self, settings: m.Settings) -> None:
        """ZenFlux has no settings of a session."""

    def on_reconnect(self) -> None:
        """Repeated frames are left out by their numbers."""

    @property
    def closing(self) -> bool:
        """Whether the run may be over, because some servers do not send its end."""
        return self._run.closing

    @property
    def decided(self) -> bool:
        """Whether the run has failed or was stopped: only its end can follow."""
        return self._run.decided

    def conclude(self) -> Sequence[DecodedItem]:
        """End a run that is known to be over, although the server has not sent its end."""
        return [] if self._run.over else self._run.conclude()

    def _change_run(self, kind: str, run_id: str) -> Sequence[DecodedItem]:
        """Another id is another run; a run without an id gets that of the first frame that has one."""
        if kind == "session_start" and not run_id and self._run.over:
            self._run = RunDecoder(self._mint, "")
        if not run_id or run_id == self._run.run_id:
            return []
        if not self._run.run_id and not self._run.over:
            self._run.run_id = run_id
            return []
        before, self._run = self._run, RunDecoder(self._mint, run_id)
        if before.over:
            return []
        ends = before.end()
        # the turn goes on, and so do its open blocks
        self._run.assembler.open_calls |= before.assembler.open_calls
        return ends


def envelope_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """The event in a frame: the payload of a socket frame, or a server-sent event itself; None for anything else."""
    if body.get("type") in ("res", "req", "pong"):
        return None
    if body.get("type") != "event":
        return body
    payload = body.get("payload")
    if not isinstance(payload, dict):
        raise BackendFailed("the server sent an event without a payload")
    return payload


def seq_of(body: dict[str, Any]) -> int:
    """The number of an event in its run; 0 if it has none."""
    seq = body.get("seq", members(body.get("payload")).get("seq"))
    return seq if type(seq) is int and seq > 0 else 0


def _data(kind: str, envelope: dict[str, Any]) -> dict[str, Any]:
    """The data of an event; the documented message_start has it beside its type."""
    data = envelope.get("data")
    if data is not None and not isinstance(data, dict):
        raise BackendFailed(f"the server sent {kind} with data that are no object")
    said: dict[str, Any] = data or {}
    if kind == "message_start" and "message" not in said and "message" in envelope:
        return {**said, "message": envelope["message"]}
    return said
