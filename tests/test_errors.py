"""Each error carries its code, and foreign exceptions stop at the border."""

import pytest

import gateway.model as m
from gateway import errors
from gateway.errors import BackendFailed, GatewayError, NotFound, TimedOut, translate_exceptions

TREE = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, GatewayError)]


def test_every_fault_code_can_be_raised() -> None:
    assert {cls.code for cls in TREE} == set(m.FaultCode)


def test_an_error_is_a_fault_in_words() -> None:
    error = TimedOut("too slow", details={"after": 3})
    assert error.fault == m.Fault(code=m.FaultCode.TIMEOUT, message="too slow", retryable=True, details={"after": 3})
    assert str(NotFound("no such thing")) == "no such thing"


def test_a_foreign_exception_is_named() -> None:
    with pytest.raises(TimedOut, match="slow"), translate_exceptions({TimeoutError: TimedOut, OSError: BackendFailed}):
        raise TimeoutError("slow")
    with (
        pytest.raises(BackendFailed, match="ConnectionResetError") as caught,
        translate_exceptions({OSError: BackendFailed}),
    ):
        raise ConnectionResetError
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_what_has_no_name_passes() -> None:
    with pytest.raises(ValueError), translate_exceptions({OSError: BackendFailed}):
        raise ValueError
