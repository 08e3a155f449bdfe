"""Section errors: wrong requests are answered with a matching status and words in JSON."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from conformance.aap.conversation import user
from conformance.aap.examination import AapExamination
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.kit.http import Reply

NOT_JSON = (b"", b'{"agent": ', b"\xff\xfe\x00", b"[]", b'"hello"')


def _expect_words(exam: AapExamination, replies: Iterable[Reply]) -> None:
    """Expect refusals to be 4xx and to say why in words; whether something is to be refused is judged elsewhere."""
    refusals = [reply for reply in replies if reply.status >= 400]
    if not refusals:
        raise NotTestable("nothing of it was refused")
    for reply in refusals:
        expect.refused(reply, "what was asked is wrong")
        exam.schemas.fit("error", reply.json(), f"the body of the refusal of {reply.asked}")


@requirement("AAP-ERR-01")
async def unknown_things_are_said_in_words(exam: AapExamination) -> None:
    """Whatever is asked of an unknown session, and a session for an unknown agent, is refused with {error}."""
    path = f"/sessions/{exam.stranger()}"
    asked: tuple[tuple[str, str, Any], ...] = (
        ("GET", path, ...),
        ("DELETE", path, ...),
        ("POST", f"{path}/turns", {"messages": [user("Hello")]}),
        ("POST", "/sessions", {"agent": {"name": f"nobody-{uuid4().hex}"}}),
        ("GET", f"{path}/history?type=full", ...),
    )
    _expect_words(exam, [await exam.http.ask(method, place, body) for method, place, body in asked])


@requirement("AAP-ERR-01")
async def wrong_requests_are_said_in_words(exam: AapExamination) -> None:
    """Missing parameters and messages, where they are refused, are refused with {error}."""
    talk = await exam.open()
    wrong: tuple[Any, ...] = ({"messages": []}, {"messages": "Hello"}, {})
    replies = [await exam.http.ask("GET", f"{talk.path}/history")]
    _expect_words(exam, [*replies, *[await talk.attempt(body) for body in wrong]])


@requirement("AAP-ERR-01")
async def malformed_bodies_are_said_in_words(exam: AapExamination) -> None:
    """Bodies that are not JSON objects are the client's error, never the server's."""
    talk = await exam.open()
    paths = ("/sessions", f"{talk.path}/turns")
    replies = [await exam.http.ask("POST", path, body=body) for path in paths for body in NOT_JSON]
    replies.append(await exam.http.ask("POST", "/sessions", body=b"hello", content_type="text/plain"))
    for reply in replies:
        expect.refused(reply, "the body is no JSON object")
    _expect_words(exam, replies)


@requirement("AAP-ERR-01")
async def a_wrong_key_is_said_in_words(exam: AapExamination) -> None:
    """A server that asks for keys refuses a wrong one with 401 or 403 and {error}; one that does not, answers."""
    reply = await exam.http.ask("GET", "/sessions", key=f"wrong-{uuid4().hex}")
    if expect.status(reply, 200, 401, 403).status == 200:
        exam.schemas.fit("sessions", reply.json(), f"the answer to {reply.asked}", "AAP-SESS-09")
    else:
        _expect_words(exam, [reply])
