"""Answers: wrapped or not, done or refused, and lists however they are laid out."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import conformance.zenflux
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed
from conformance.kit.http import Reply
from conformance.kit.schemas import Schemas
from conformance.zenflux.rest_answer import Answer, listed, read, wrapped

SCHEMAS = Schemas(Path(conformance.zenflux.__file__).parent / "schemas")


def answered(body: Any, status: int = 200) -> Answer:
    return wrapped(Reply("GET /x", status, {}, orjson.dumps(body)), SCHEMAS)


def wrapper(code: int, data: Any = None) -> dict[str, Any]:
    return {"code": code, "message": "words", "data": data}


@pytest.mark.parametrize(("status", "code"), [(200, 200), (201, 200), (201, 201)])
def test_a_success_has_its_data(status: int, code: int) -> None:
    assert answered(wrapper(code, [1]), status).done() == [1]


@pytest.mark.parametrize(("status", "code"), [(200, 400), (400, 400), (200, 201), (500, 200)])
def test_other_codes_are_no_success(status: int, code: int) -> None:
    with pytest.raises(Failed, match="to succeed"):
        answered(wrapper(code), status).done()


@pytest.mark.parametrize("body", [{}, [], None, {"code": "200", "message": "", "data": 1}, wrapper(404, {})])
def test_what_is_not_wrapped_is_a_failure(body: Any) -> None:
    with pytest.raises(Failed, match="`wrapper`"):
        answered(body)


def test_the_code_of_a_refusal_is_in_the_body() -> None:
    answered(wrapper(404), 200).refused("it is unknown")
    answered(wrapper(404), 404).missing("it is unknown")
    with pytest.raises(Failed, match="a 404"):
        answered(wrapper(404), 200).missing("it is unknown")
    for status, code in ((200, 200), (500, 500), (500, 400)):
        with pytest.raises(Failed, match="to be refused"):
            answered(wrapper(code), status).refused("it is wrong")


def test_lists_are_found_bare_or_named() -> None:
    assert listed([{"a": 1}], "things") == listed({"things": [{"a": 1}], "total": 1}, "things") == [{"a": 1}]
    for wrong in (None, {"total": 1}, [1], "x"):
        with pytest.raises(Failed, match="a list of objects"):
            listed(wrong, "things")


@pytest.mark.parametrize(
    ("body", "status", "owner"),
    [
        ({"id": 7}, 200, "ZF-GEN-03"),
        ([7], 200, "ZF-GEN-03"),
        ({"code": 0, "message": "", "data": {"id": 7}}, 200, "ZF-GEN-03"),
        ({"detail": "no"}, 404, "ZF-GEN-04"),
        (wrapper(404, {}), 404, "ZF-GEN-04"),
    ],
)
def test_a_wrong_wrapper_is_noted_and_read_on(body: Any, status: int, owner: str) -> None:
    departures = Departures()
    answer = read(Reply("GET /x", status, {}, orjson.dumps(body)), SCHEMAS, departures)
    assert [item.owner for item in departures.noted] == [owner]
    assert answer.is_done is (status == 200)
    assert answer.code == status


def test_a_failed_call_is_charged_to_its_own_row() -> None:
    refusal = read(Reply("GET /x", 404, {}, orjson.dumps(wrapper(404))), SCHEMAS, Departures(), "ZF-HTTP-3.2-03")
    with pytest.raises(Failed) as failure:
        refusal.done()
    assert failure.value.owner == "ZF-HTTP-3.2-03"


def test_what_is_no_json_is_charged_to_the_wrapper() -> None:
    with pytest.raises(Failed) as failure:
        read(Reply("GET /x", 200, {}, b"<html>"), SCHEMAS, Departures(), "ZF-HTTP-3.2-03")
    assert failure.value.owner == "ZF-GEN-03"
    assert read(Reply("GET /x", 404, {}, b"<html>"), SCHEMAS, Departures()).code == 404
