"""The words between a dialect's client and the house can be compared, and carry no more than they say."""

from collections.abc import Sequence

from gateway.model import DecidePermission, NoticePosted, Outcome, PermissionAsk, Settings, StopReason, ToolCall
from gateway.ports.remote import (
    DecodedItem,
    Decoder,
    NewRemoteSession,
    ParsedFrame,
    RemoteAddress,
    RemoteAsk,
    RemoteTurnEnd,
    Timeouts,
)


def test_what_is_left_out_has_a_sensible_value() -> None:
    assert RemoteTurnEnd() == RemoteTurnEnd(
        stop_reason=StopReason.END_TURN, outcome=Outcome.COMPLETED, fault=None, result=None
    )
    assert RemoteAddress(url="http://x").patience == Timeouts()
    assert (NewRemoteSession().history, NewRemoteSession().title) == ((), None)
    ask = PermissionAsk(call=ToolCall(call_id="c", name="n"))
    assert RemoteAsk(ask=ask, ref="c") == RemoteAsk(ask=ask, ref="c", scope_id="root")


class Plain(Decoder):
    """A hearing of a dialect that makes nothing of answers, settings and cuts."""

    paused = False

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        return [NoticePosted(topic="t", title=frame.name)]

    def end(self) -> Sequence[DecodedItem]:
        return []


def test_a_hearing_need_not_care_for_what_its_dialect_makes_nothing_of() -> None:
    hearing, asked = Plain(), RemoteAsk(ask=PermissionAsk(call=ToolCall(call_id="c", name="n")), ref="c")
    before = hearing.feed(ParsedFrame("x", {}))
    hearing.on_answer(asked, DecidePermission(request_id="c", granted=True))
    hearing.configure(Settings(system="be kind"))
    hearing.on_reconnect()
    assert hearing.feed(ParsedFrame("x", {})) == before
