"""The words between a dialect's client and the house can be compared, and carry no more than they say."""

from gateway.model import Outcome, PermissionAsk, StopReason, ToolCall
from gateway.upstream import Asked, Ended, Opening, Patience, RemoteAddress


def test_what_is_left_out_has_a_sensible_value() -> None:
    assert Ended() == Ended(stop_reason=StopReason.END_TURN, outcome=Outcome.COMPLETED, fault=None, result=None)
    assert RemoteAddress(url="http://x").patience == Patience()
    assert (Opening().history, Opening().title) == ((), None)
    ask = PermissionAsk(call=ToolCall(call_id="c", name="n"))
    assert Asked(ask=ask, ref="c") == Asked(ask=ask, ref="c", scope_id="root")
