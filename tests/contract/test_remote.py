"""The words between a dialect's client and the house can be compared, and carry no more than they say."""

from collections.abc import Sequence

import gateway.model as m
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
        stop_reason=m.StopReason.END_TURN, outcome=m.Outcome.COMPLETED, fault=None, result=None
    )
    assert RemoteAddress(url="http://x").patience == Timeouts()
    assert (NewRemoteSession().history, NewRemoteSession().title) == ((), None)
    ask = m.PermissionAsk(call=m.ToolCall(call_id="c", name="n"))
    assert RemoteAsk(ask=ask, ref="c") == RemoteAsk(ask=ask, ref="c", scope_id="root")


class Plain(Decoder):
    """A hearing of a dialect that makes nothing of answers, settings and cuts."""

    paused = False

    def feed(self, frame: ParsedFrame) -> Sequence[DecodedItem]:
        return [m.NoticePosted(topic="t", title=frame.name)]

    def end(self) -> Sequence[DecodedItem]:
        return []


def test_a_hearing_need_not_care_for_what_its_dialect_makes_nothing_of() -> None:
    hearing, asked = Plain(), RemoteAsk(ask=m.PermissionAsk(call=m.ToolCall(call_id="c", name="n")), ref="c")
    before = hearing.feed(ParsedFrame("x", {}))
    hearing.on_answer(asked, m.DecidePermission(request_id="c", granted=True))
    hearing.configure(m.Settings(system="be kind"))
    hearing.on_reconnect()
    assert hearing.feed(ParsedFrame("x", {})) == before
