"""Section conventions, idempotency keys: requests with one key and one body have one effect and one answer."""

from uuid import uuid4

from conformance.cas.conversation import Conversation
from conformance.cas.examination import CasExamination
from conformance.cas.run import message
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.http import Reply

SECTION = "repetition"
"""The first part of the case names: reports keep it."""

HEADERS = ("Idempotency-Key", "X-Idempotency-Key")


async def _body(exam: CasExamination, title: str) -> dict[str, str]:
    return {"agent": await exam.agent(), "environment_id": await exam.environment(), "title": title}


def same(first: Reply, second: Reply) -> None:
    """Expect the second answer to be the first."""
    told = (first.status, first.json())
    expect.equal(f"the second answer to {first.asked}", told, (second.status, second.json()))


@requirement("CAS-GEN-05")
async def a_repeated_creation_is_one(exam: CasExamination) -> None:
    """Under either header the second POST is answered like the first, and there is one session."""
    agent = await exam.own_agent()
    body = await _body(exam, "once")
    for place, header in enumerate(HEADERS, start=1):
        headers = {header: uuid4().hex}
        first = expect.status(await exam.create(body, headers=headers), 201)
        same(first, await exam.create(body, headers=headers))
        page = await exam.have("sessions", "GET", "/sessions", query={"agent_id": agent})
        expect.equal("the number of sessions", place, len(page["data"]))


@requirement("CAS-GEN-05")
async def another_body_is_a_conflict(exam: CasExamination) -> None:
    """The same key with another body is a 409; another key is another request."""
    key = uuid4().hex
    first = expect.status(await exam.create(await _body(exam, "one"), headers={HEADERS[0]: key}), 201)
    exam.refused(await exam.create(await _body(exam, "other"), headers={HEADERS[0]: key}), 409)
    other = await exam.create(await _body(exam, "one"), headers={HEADERS[0]: uuid4().hex})
    expect.that(expect.status(other, 201).json()["id"] != first.json()["id"], "two sessions", first.json()["id"])


@requirement("CAS-GEN-05")
async def a_repeated_message_is_said_once(exam: CasExamination) -> None:
    """Posting the same message under the same key runs one turn."""
    talk = await exam.open()
    body = {"events": [message(exam.profile.prompt("text"))]}
    headers = {HEADERS[0]: uuid4().hex}
    async with talk.follow() as follower:
        first = expect.status(await talk.attempt(body, headers=headers), 202)
        await follower.run(first.asked, exam.fitting("accepted", first)["data"])
    same(first, await talk.attempt(body, headers=headers))
    expect.equal("the number of messages", 1, len(await _messages(talk)))


async def _messages(talk: Conversation) -> list[str]:
    return [event["id"] for event in await talk.events() if event["type"] == "user.message"]


@requirement("CAS-GEN-05")
async def a_repeated_deletion_is_answered_again(exam: CasExamination) -> None:
    """The second DELETE under the same key is no 404."""
    talk = await exam.open()
    headers = {HEADERS[0]: uuid4().hex}
    with expect.owned("CAS-SESS-12"):
        first = expect.status(await exam.ask("DELETE", talk.path, headers=headers), 200)
    same(first, await exam.ask("DELETE", talk.path, headers=headers))
