"""Frames of a ZenFlux server in, from a socket or an event stream, canonical events out. No clock, no socket."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame, RemoteAsk
from mappings.language import DecodedFrame, FrameDecoder, UnreadableBody

from .readers import Bindings, builtin_zenflux_table
from .run_decoder import READ_NAMES, RunDecoder

ENVELOPE_NAMES = ("run_id", "session_id", "out_seq")
RUN_STARTED = "turn.started"


class UnreadableEvent(NamedTuple):
    """A frame that cannot be understood, with what stands around its body, as far as that can be read."""

    cue: str
    bindings: Bindings
    error: BackendFailed


ReadFrame = DecodedFrame | UnreadableEvent
"""A frame that the table knows, with what stands in it."""


class Decoder:
    """The reverse of the projector, for frames of a socket and for the data of server-sent events.

    Runs follow one another; a frame of a run that has ended is ignored.
    """

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._run = RunDecoder(mint, "")

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        read = read_frame(frame)
        return [] if read is None else self.take(read)

    def take(self, read: ReadFrame) -> Sequence[DecodedItem]:
        """A frame that was read; one that cannot be understood changes nothing, so open blocks can still be ended."""
        run_id = read.bindings.get("run_id") or ""
        if isinstance(read, UnreadableEvent):
            if self._run.over and run_id in ("", self._run.run_id):
                return []
            raise read.error
        if run_id == self._run.run_id:
            return self._run.feed(read.cue, read.bindings)
        changed = self._change_run(read.cue, run_id)
        return [*changed, *self._run.feed(read.cue, read.bindings)]

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

    def _change_run(self, cue: str, run_id: str) -> Sequence[DecodedItem]:
        """Another id is another run; a run without an id gets that of the first frame that has one."""
        if not run_id:
            if cue == RUN_STARTED and self._run.over:
                self._run = RunDecoder(self._mint, "")
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


def read_frame(frame: ParsedFrame) -> ReadFrame | None:
    """What a frame says; None for a frame that the table does not have. Raises `BackendFailed` for no frame at all."""
    if not isinstance(frame.body, dict):
        raise BackendFailed("the server sent a frame that is no object")
    try:
        return frame_decoder().decode(frame.name, frame.body)
    except UnreadableBody as error:
        return _unreadable(frame, error)


def _unreadable(frame: ParsedFrame, error: UnreadableBody) -> UnreadableEvent:
    found = envelope_decoder().find(frame.name, frame.body)
    assert found is not None, "a frame that has no row is not read"
    failed = BackendFailed(f"a {found.wire} of the server cannot be understood: {error}")
    try:
        return UnreadableEvent(found.cue, found.bindings(), failed)
    except UnreadableBody:
        return UnreadableEvent(found.cue, {}, failed)


@cache
def frame_decoder() -> FrameDecoder:
    """The frames of ZenFlux as the table reads them; what a deployment has changed of it is not what others write."""
    wanted = {cue: (*ENVELOPE_NAMES, *names) for cue, names in READ_NAMES.items()}
    return builtin_zenflux_table().decoder("json", "sse", wanted={RUN_STARTED: ENVELOPE_NAMES, **wanted})


@cache
def envelope_decoder() -> FrameDecoder:
    """What stands around the bodies of frames."""
    return builtin_zenflux_table().decoder("json", "sse", wanted=dict.fromkeys(READ_NAMES, ENVELOPE_NAMES))
