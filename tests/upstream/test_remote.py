"""The words between a dialect's client and the house can be compared, and carry no more than they say."""

from collections.abc import Sequence

from gateway.model import DecidePermission, NoticePosted, Outcome, PermissionAsk, Settings, StopReason, ToolCall
from gateway.upstream import Asked, Ended, Frame, Heard, Hearing, Opening, Patience, RemoteAddress


def test_what_is_left_out_has_a_sensible_value() -> None:
    assert Ended() == Ended(stop_reason=StopReason.END_TURN, outcome=Outcome.COMPLETED, fault=None, result=None)
    assert RemoteAddress(url="http://x").patience == Patience()
    assert (Opening().history, Opening().title) == ((), None)
    ask = PermissionAsk(call=ToolCall(call_id="c", name="n"))
    assert Asked(ask=ask, ref="c") == Asked(ask=ask, ref="c", scope_id="root")


class Plain(Hearing):
    """A hearing of a dialect that makes nothing of answers, settings and cuts."""

    paused = False

    def feed(self, frame: Frame) -> Sequence[Heard]:
        return [NoticePosted(topic="t", title=frame.name)]

    def end(self) -> Sequence[Heard]:
        return []


def test_a_hearing_need_not_care_for_what_its_dialect_makes_nothing_of() -> None:
    hearing, asked = Plain(), Asked(ask=PermissionAsk(call=ToolCall(call_id="c", name="n")), ref="c")
    before = hearing.feed(Frame("x", {}))
    hearing.settle(asked, DecidePermission(request_id="c", granted=True))
    hearing.configure(Settings(system="be kind"))
    hearing.interrupted()
    assert hearing.feed(Frame("x", {})) == before
