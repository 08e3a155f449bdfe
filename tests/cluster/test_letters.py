"""What servers write to each other arrives as it was meant."""

import pytest

from gateway.cluster.letters import (
    AnyCall,
    ArchiveScope,
    Asked,
    Close,
    Delete,
    Replied,
    Rewind,
    Submit,
    Taken,
    Tell,
    Update,
    decode,
    encode,
    raised,
    refused,
)
from gateway.errors import Busy, Conflict, GatewayError, Invalid, NotPending, Overloaded
from gateway.log.redis import Lost
from gateway.model import (
    CloseReason,
    Configure,
    CustomEvent,
    FaultCode,
    InputAccepted,
    NoticePosted,
    Record,
    SendMessage,
    Settings,
)
from gateway.ports import Receipt

ME = {"owner": "ann", "session_id": "s"}


@pytest.mark.parametrize("call", [
    Submit(**ME, commands=(SendMessage(content="héllo"), Configure(settings=Settings(secrets={"key": "hush"})))),
    Update(**ME, title="t", metadata={"a": [1, None]}),
    Close(**ME, reason=CloseReason.ARCHIVED),
    ArchiveScope(**ME, scope_id="sub"),
    Rewind(**ME, to_seq=3, reason="why"),
    Tell(**ME, event=NoticePosted(topic="t", title="n")),
    Tell(**ME, event=CustomEvent(topic="c", payload={"a": 1})),
    Delete(**ME),
])
def test_a_call_arrives_whole(call: AnyCall) -> None:
    letter = Asked(request="r", sender="a", call=call)
    assert decode(encode(letter)) == letter


def test_a_receipt_arrives_whole() -> None:
    record = Record(seq=2, at=1.5, session_id="s", turn_id="t", event=InputAccepted(
        command_id="c", command=SendMessage(content="x")))
    letter = Replied(request="r", receipt=Receipt(turn_id="t", records=(record,), after=2, begun=True))
    assert decode(encode(letter)) == letter


def test_what_the_script_writes_is_understood() -> None:
    assert decode(b'{"session_id":"s","token":2,"kind":"lost"}') == Taken(session_id="s", token=2)


@pytest.mark.parametrize("error", [
    Busy("b"), NotPending("n"), Conflict("c"), Invalid("i", param="p", details={"a": 1}), Overloaded("o"),
    GatewayError("g"),
])
def test_a_refusal_arrives_as_the_error_it_was(error: GatewayError) -> None:
    letter = decode(encode(Replied(request="r", refused=refused(error))))
    assert isinstance(letter, Replied) and letter.refused is not None
    back = raised(letter.refused)
    assert (type(back), back.message, back.param, back.details, back.code) == (
        type(error), error.message, error.param, error.details, error.code)


def test_a_kind_that_only_one_server_knows_arrives_as_the_nearest_that_all_do() -> None:
    back = raised(refused(Lost("gone")))
    assert type(back) is Overloaded

    class Odd(GatewayError):
        code = FaultCode.TIMEOUT

    assert raised(refused(Odd("late"))).code is FaultCode.TIMEOUT
