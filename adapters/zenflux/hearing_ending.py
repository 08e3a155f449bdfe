"""How a run ends: by what its messages said last, by a fault, or because it was stopped."""

from gateway.model import Fault, Outcome, StopReason

NOT_AN_END = (StopReason.TOOL_USE, StopReason.NEEDS_INPUT)


class Ending:
    """What was told so far of why the run is going to end."""

    def __init__(self) -> None:
        self.stop = StopReason.END_TURN
        """Why the last message ended."""
        self.fault: Fault | None = None
        self.stopped: StopReason | None = None

    @property
    def decided(self) -> bool:
        """The run has failed or was stopped; only its end can follow."""
        return self.fault is not None or self.stopped is not None

    @property
    def outcome(self) -> Outcome:
        if self.fault is not None:
            return Outcome.FAILED
        return Outcome.COMPLETED if self.stopped is None else Outcome.INTERRUPTED

    def stop_of(self, outcome: Outcome) -> StopReason:
        """Why the run has stopped, where it is known how it ended."""
        if outcome is Outcome.INTERRUPTED:
            return self.stopped or StopReason.INTERRUPTED
        if outcome is Outcome.FAILED:
            late = self.fault is not None and self.fault.code == "timeout"
            return StopReason.TIMEOUT if late else StopReason.ERROR
        return StopReason.END_TURN if self.stop in NOT_AN_END else self.stop
