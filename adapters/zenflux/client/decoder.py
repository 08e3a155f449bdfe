"""Frames of a ZenFlux server in, from a socket or an event stream, canonical events out. No clock, no socket."""

from collections.abc import Sequence
from functools import cache

from gateway.client import read_names
from gateway.errors import BackendFailed
from gateway.ids import Mint
from gateway.ports import DecodedItem, ParsedFrame
from gateway.ports import Decoder as DecoderPort
from mappings.language import FrameDecoder, UnreadableBody

from .readers import ZENFLUX, RunEvent
from .run_decoder import HANDLERS, RunDecoder

RUN_STARTED = "turn.started"


class Decoder(DecoderPort):
    """The reverse of the projector, for frames of a socket and for the data of server-sent events.

    Runs follow one another; a frame of a run that has ended is ignored. Repeated frames are left out by their numbers.
    """

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._run = RunDecoder(mint, "")

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        event = read_event(frame)
        return [] if event is None else self.take(event)

    def take(self, event: RunEvent) -> Sequence[DecodedItem]:
        """A frame that was read; one that cannot be understood changes nothing, so open blocks can still be ended."""
        run_id = event.run_id
        if event.error is not None:
            if self._run.over and run_id in ("", self._run.run_id):
                return []
            raise event.error
        if run_id == self._run.run_id:
            return self._run.feed(event)
        changed = self._change_run(event.cue, run_id)
        return [*changed, *self._run.feed(event)]

    def end(self) -> Sequence[DecodedItem]:
        return self._run.end()

    @property
    def paused(self) -> bool:
        return self._run.paused

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


def read_event(frame: ParsedFrame) -> RunEvent | None:
    """What a frame says; None for a frame that the table does not have. Raises `BackendFailed` for no frame at all."""
    if not isinstance(frame.body, dict):
        raise BackendFailed("the server sent a frame that is not an object")
    try:
        read = frame_decoder().read(frame.name, frame.body)
    except UnreadableBody as error:
        return _unreadable(frame, error)
    return None if read is None else RunEvent(*read)


def _unreadable(frame: ParsedFrame, error: UnreadableBody) -> RunEvent:
    found = envelope_decoder().find(frame.name, frame.body)
    assert found is not None, "a frame that has no row is not read"
    failed = BackendFailed(f"a {found.wire} of the server cannot be understood: {error}")
    try:
        return RunEvent(found.cue, found.bindings(), failed)
    except UnreadableBody:
        return RunEvent(found.cue, {}, failed)


@cache
def frame_decoder() -> FrameDecoder:
    """The frames of ZenFlux as the table reads them; what a deployment has changed of it is not what others write."""
    return ZENFLUX.frames(read_names(HANDLERS), RunEvent.ENVELOPE)


@cache
def envelope_decoder() -> FrameDecoder:
    """What stands around the bodies of frames."""
    return ZENFLUX.frames({}, RunEvent.ENVELOPE)
