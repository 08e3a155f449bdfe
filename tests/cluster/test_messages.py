"""What servers write to each other arrives as it was meant."""

import pytest

import gateway.model as m
from gateway.cluster.messages import (
    AnyCall,
    ArchiveScopeCall,
    CloseCall,
    DeleteCall,
    OwnerChanged,
    PostEventCall,
    RewindCall,
    RpcReply,
    RpcRequest,
    SubmitCall,
    UpdateCall,
    decode_message,
    encode_message,
    error_from_message,
    error_to_message,
)
from gateway.errors import Busy, Conflict, GatewayError, Invalid, NotPending, Overloaded
from gateway.ports import Receipt
from gateway.storage.log.redis import LeaseLost

ME = {"owner": "ann", "session_id": "s"}


@pytest.mark.parametrize(
    "call",
    [
        SubmitCall(
            **ME, commands=(m.SendMessage(content="héllo"), m.Configure(settings=m.Settings(secrets={"key": "hush"})))
        ),
        UpdateCall(**ME, title="t", metadata={"a": [1, None]}),
        CloseCall(**ME, reason=m.CloseReason.ARCHIVED),
        ArchiveScopeCall(**ME, scope_id="sub"),
        RewindCall(**ME, to_seq=3, reason="why"),
        PostEventCall(**ME, event=m.NoticePosted(topic="t", title="n")),
        PostEventCall(**ME, event=m.CustomEvent(topic="c", payload={"a": 1})),
        DeleteCall(**ME),
    ],
)
def test_a_call_arrives_whole(call: AnyCall) -> None:
    letter = RpcRequest(request="r", sender="a", call=call)
    assert decode_message(encode_message(letter)) == letter


def test_a_receipt_arrives_whole() -> None:
    record = m.Record(seq=2, at=1.5, session_id="s", turn_id="t", event=m.InputAccepted(
        command_id="c", command=m.SendMessage(content="x")))
    letter = RpcReply(request="r", receipt=Receipt(turn_id="t", records=(record,), after=2, begun=True))
    assert decode_message(encode_message(letter)) == letter


def test_what_the_script_writes_is_understood() -> None:
    assert decode_message(b'{"session_id":"s","token":2,"kind":"lost"}') == OwnerChanged(session_id="s", token=2)


@pytest.mark.parametrize("error", [
    Busy("b"), NotPending("n"), Conflict("c"), Invalid("i", param="p", details={"a": 1}), Overloaded("o"),
    GatewayError("g"),
])
def test_a_refusal_arrives_as_the_error_it_was(error: GatewayError) -> None:
    letter = decode_message(encode_message(RpcReply(request="r", refused=error_to_message(error))))
    assert isinstance(letter, RpcReply) and letter.refused is not None
    back = error_from_message(letter.refused)
    assert (type(back), back.message, back.param, back.details, back.code) == (
        type(error), error.message, error.param, error.details, error.code)


def test_a_kind_that_only_one_server_knows_arrives_as_the_nearest_that_all_do() -> None:
    back = error_from_message(error_to_message(LeaseLost("gone")))
    assert type(back) is Overloaded

    class Odd(GatewayError):
        code = m.FaultCode.TIMEOUT

    assert error_from_message(error_to_message(Odd("late"))).code is m.FaultCode.TIMEOUT
