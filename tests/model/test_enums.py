"""The closed word lists."""

import gateway.model as m


def test_every_fault_code_has_the_status_of_the_design() -> None:
    assert {code.value: code.status for code in m.FaultCode} == {
        "invalid": 400, "unauthenticated": 401, "forbidden": 403, "not_found": 404, "conflict": 409, "too_large": 413,
        "unsupported": 422, "rate_limited": 429, "internal": 500, "backend": 502, "overloaded": 503, "timeout": 504,
        "interrupted": 503,
    }


def test_what_may_go_well_another_time() -> None:
    assert {code.value for code in m.FaultCode if code.is_retryable} == {
        "rate_limited", "overloaded", "timeout", "interrupted",
    }
