"""What the cases of the management share: what is allowed and offered, names of one's own, and what an answer shows."""

from typing import Any
from uuid import uuid4

from conformance.kit.expect import NotTestable
from conformance.kit.http import Reply
from conformance.zenflux.answer import Answer
from conformance.zenflux.examination import BASE, ZenfluxExamination

FORBIDDEN = (401, 403)
ABSENT = (404, 405, 501)


def own_name() -> str:
    """A name that nobody else uses, and that every kind of resource may have."""
    return f"examined-{uuid4().hex[:12]}"


async def manage(exam: ZenfluxExamination, method: str, path: str, json: Any = ..., **query: str) -> Answer:
    """The wrapped answer to one call of the management, if the profile allows to call it."""
    if not exam.profile.management:
        raise NotTestable("the profile does not allow to call the management endpoints")
    return await exam.ask(method, path, json, query=query or None)


async def make(exam: ZenfluxExamination, path: str, json: Any, at: str) -> Answer:
    """The answer to a POST after which there may be something at another path, to be deleted after the case."""
    exam.made(at)
    answer = await manage(exam, "POST", path, json)
    if 400 <= answer.code < 500:
        exam.unmade(at)
    return answer


def granted(answer: Answer) -> bool:
    """Whether a call was carried out; a server may forbid it, and must do it otherwise."""
    if answer.code in FORBIDDEN:
        return False
    answer.done()
    return True


async def offered(exam: ZenfluxExamination, path: str) -> None:
    """NotTestable unless the server has the list that a group of calls is about."""
    if not exam.profile.management:
        raise NotTestable("the profile does not allow to call the management endpoints")
    reply = await exam.http.ask("GET", BASE + path)
    if reply.status in ABSENT or _code(reply) in ABSENT:
        raise NotTestable(f"the server does not offer {path} ({reply.status})")


async def shows(exam: ZenfluxExamination, word: str, *paths: str) -> bool:
    """Whether the word stands in what the server has at one of these paths, whatever the shape of that."""
    replies = [await exam.http.ask("GET", BASE + path) for path in paths]
    return any(200 <= reply.status < 300 and word in reply.text for reply in replies)


def mentions(value: Any, word: str) -> bool:
    """Whether the word stands in a text of a JSON value."""
    if isinstance(value, dict):
        return any(mentions(item, word) for item in value.values())
    if isinstance(value, list):
        return any(mentions(item, word) for item in value)
    return isinstance(value, str) and word in value


def _code(reply: Reply) -> Any:
    return reply.object().get("code") if reply.has() else reply.status
