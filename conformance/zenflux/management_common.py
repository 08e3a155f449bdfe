"""What the management cases share: permissions, missing parts, unique names, and members of answers."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.kit.http import Reply
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.rest_answer import Answer, listed
from conformance.zenflux.rest_calls import BASE

FORBIDDEN = (401, 403)
UNKNOWN_CALL = (405, 501)
ABSENT = (404, *UNKNOWN_CALL)
BAD = (400, 422)
"""A bad body; the specification says 400, and frameworks say 422 of all bodies alike."""
UNKNOWN, TAKEN, TOO_LARGE = 404, 409, 413
T = TypeVar("T")


def own_name() -> str:
    """A name that nobody else uses, and that every kind of resource may have."""
    return f"examined-{uuid4().hex[:12]}"


def allowed(exam: ZenfluxExamination) -> None:
    """NotTestable unless the profile allows to call the management."""
    if not exam.profile.management:
        raise NotTestable("the profile does not allow to call the management endpoints")


async def manage(exam: ZenfluxExamination, method: str, path: str, json: Any = ..., **query: str) -> Answer:
    """The wrapped answer to one call of the management, if the profile allows to call it."""
    allowed(exam)
    return await exam.ask(method, path, json, query=query or None)


async def call(exam: ZenfluxExamination, method: str, path: str, json: Any = ..., **query: str) -> Answer:
    """The same where it is another requirement that the server has the call: NotTestable if it says that it has not."""
    answer = await manage(exam, method, path, json, **query)
    if answer.code in UNKNOWN_CALL:
        raise NotTestable(f"the server does not offer {method} {path} ({answer.code})")
    return answer


async def make(exam: ZenfluxExamination, path: str, json: Any, at: str) -> Answer:
    """The answer to a POST after which there may be something at another path, to be deleted after the case."""
    exam.made(at)
    answer = await manage(exam, "POST", path, json)
    if is_refused(answer):
        exam.unmade(at)
    return answer


def made(answer: Answer, what: str) -> None:
    """Expect something to be made for a case; NotTestable if nobody may."""
    if answer.code in FORBIDDEN:
        raise NotTestable(f"the server lets nobody {what}")
    answer.done()


async def deleted(exam: ZenfluxExamination, path: str, schema: str) -> dict[str, Any]:
    """The data of a deletion that must succeed, and fit the schema."""
    data: dict[str, Any] = (await call(exam, "DELETE", path)).done()
    exam.schemas.fit(schema, data, f"the data of DELETE {path}")
    return data


async def expect_deleted_once(exam: ZenfluxExamination, path: str) -> None:
    """Expect what can be deleted to be unknown when it is deleted again."""
    (await call(exam, "DELETE", path)).done()
    refused(await call(exam, "DELETE", path), UNKNOWN)


def granted(answer: Answer) -> bool:
    """Whether a call was carried out; a server may forbid it, and must do it otherwise."""
    if answer.code in FORBIDDEN:
        return False
    answer.done()
    return True


def refused(answer: Answer, *codes: int) -> Answer:
    """Expect a refusal with one of these codes, of what is not there, is not allowed or makes no sense."""
    coded(answer, "it is not there, is not allowed or makes no sense", *codes)
    return answer


async def own_unless_forbidden(
    exam: ZenfluxExamination, own: Callable[[ZenfluxExamination], Awaitable[T]], method: str, path: str, json: Any = ...
) -> T | None:
    """Something of one's own to change; None if nothing can be made, and changing what nobody has is forbidden too."""
    try:
        return await own(exam)
    except (NotTestable, Failed):
        if (await manage(exam, method, path, json)).code not in FORBIDDEN:
            raise
        return None


async def perhaps(exam: ZenfluxExamination, own: Callable[[ZenfluxExamination], Awaitable[T]]) -> T | None:
    """Something of one's own, if it can be made."""
    try:
        return await own(exam)
    except NotTestable:
        return None
    except Unanswered:
        raise
    except Failed as failure:
        if failure.owner is None:
            raise
        exam.departures.note(failure.owner, failure.expected, failure.seen)
        return None


async def offered(exam: ZenfluxExamination, path: str) -> None:
    """NotTestable unless the server has the list that a group of calls is about."""
    allowed(exam)
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


# -- rows and their witnesses ------------------------------------------------------------------------------------------


def is_taken(answer: Answer, *accepted: int) -> bool:
    """Whether a call that must be there was carried out; failing unless it was, or was refused with one of these."""
    codes = f" or to be one of {', '.join(map(str, accepted))}" if accepted else ""
    is_there = answer.is_done or answer.code in accepted
    expect.that(is_there, f"{answer.reply.asked} to succeed with code 200{codes}", answer.reply.told)
    return answer.is_done


def is_refused(answer: Answer) -> bool:
    """Whether a call was not carried out for certain: a server that broke may have done something."""
    return 400 <= answer.code < 500 or answer.code in ABSENT


def coded(answer: Answer, why: str, *codes: int) -> None:
    """Expect a refusal with one of these codes; a call that is not there refuses everything alike."""
    if answer.code in ABSENT and answer.code not in codes:
        raise NotTestable(f"the server does not offer {answer.reply.asked} ({answer.code})")
    wanted = " or ".join(map(str, codes))
    expect.that(answer.code in codes, f"{answer.reply.asked} to be a {wanted}, because {why}", answer.reply.told)


async def obtained(exam: ZenfluxExamination, method: str, path: str, json: Any = ..., **query: str) -> Any:
    """The data of a call that succeeds; what it looks like cannot be examined if it does not."""
    with expect.preparing(f"{method} {path}"):
        return (await manage(exam, method, path, json, **query)).done()


async def heard(exam: ZenfluxExamination, path: str, **query: str) -> Answer | None:
    """What a witness says: the answer to a GET, if it is a success."""
    allowed(exam)
    try:
        reply = await exam.http.ask("GET", BASE + path, query=query or None)
    except Unanswered:
        raise
    except Failed:
        return None
    body = reply.object() if reply.has("code", "data") else {}
    return Answer(reply, body) if isinstance(body.get("code"), int) and Answer(reply, body).is_done else None


async def some_agent(exam: ZenfluxExamination) -> str | None:
    """An agent that the server has: the one of the profile, or the first that it lists, if it can be read."""
    if exam.profile.agent:
        return exam.profile.agent
    answer = await heard(exam, "/agents")
    try:
        agents = listed(answer.body["data"], "agents") if answer else []
    except Failed:
        return None
    names = [agent.get("agent_id", agent.get("id")) for agent in agents]
    return next((name for name in names if isinstance(name, str) and name), None)
