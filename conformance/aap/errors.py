"""Section errors: wrong requests are answered with a matching status and words in JSON."""

from typing import Any
from uuid import uuid4

from conformance.aap.conversation import user
from conformance.aap.examination import AapExamination
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.http import Reply

NOT_JSON: tuple[tuple[bytes, str], ...] = (
    (b"", "the body is empty"),
    (b'{"agent": ', "the JSON breaks off"),
    (b"\xff\xfe\x00", "the body is not UTF-8"),
    (b"[]", "the body is not an object"),
    (b'"hello"', "the body is not an object"),
)


def _expect_words(exam: AapExamination, reply: Reply, why: str) -> None:
    expect.refused(reply, why)
    exam.schemas.fit("error", reply.json(), f"the body of the refusal of {reply.asked}")


@requirement("AAP-ERR-01")
async def unknown_things_are_said_in_words(exam: AapExamination) -> None:
    """Whatever is asked of an unknown session, and a session for an unknown agent, is refused with {error}."""
    path = f"/sessions/{exam.stranger()}"
    for method, place, body in (
        ("GET", path, ...),
        ("DELETE", path, ...),
        ("POST", f"{path}/turns", {"messages": [user("Hello")]}),
        ("POST", "/sessions", {"agent": {"name": f"nobody-{uuid4().hex}"}}),
    ):
        _expect_words(exam, await exam.http.ask(method, place, body), "it names something unknown")
    history = await exam.http.ask("GET", f"{path}/history", query={"type": "full"})
    _expect_words(exam, history, "it names an unknown session")


@requirement("AAP-ERR-01")
async def wrong_requests_are_said_in_words(exam: AapExamination) -> None:
    """Missing parameters and messages are refused with {error}."""
    talk = await exam.open()
    _expect_words(exam, await exam.http.ask("GET", f"{talk.path}/history"), "it names no history type")
    wrong: tuple[Any, ...] = ({"messages": []}, {"messages": "Hello"}, {})
    for body in wrong:
        _expect_words(exam, await talk.attempt(body), "it has no message")


@requirement("AAP-ERR-01")
async def malformed_bodies_are_said_in_words(exam: AapExamination) -> None:
    """Bodies that are not JSON objects are the client's error, never the server's."""
    talk = await exam.open()
    for path in ("/sessions", f"{talk.path}/turns"):
        for body, why in NOT_JSON:
            _expect_words(exam, await exam.http.ask("POST", path, body=body), why)
    plain = await exam.http.ask("POST", "/sessions", body=b"hello", content_type="text/plain")
    _expect_words(exam, plain, "the body is plain text")


@requirement("AAP-ERR-01")
async def a_wrong_key_is_said_in_words(exam: AapExamination) -> None:
    """A server that asks for keys refuses a wrong one with 401 or 403 and {error}; one that does not, answers."""
    reply = await exam.http.ask("GET", "/sessions", key=f"wrong-{uuid4().hex}")
    if expect.status(reply, 200, 401, 403).status == 200:
        exam.schemas.fit("sessions", reply.json(), f"the answer to {reply.asked}")
    else:
        _expect_words(exam, reply, "the key is wrong")
