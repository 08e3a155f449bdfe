"""Section management: agents, skills, tools, settings, memories, tasks, documents and voice answer in the wrapper."""

import re
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.case import Case
from conformance.kit.expect import NotTestable
from conformance.zenflux.examination import ZenfluxExamination

NOT_IMPLEMENTED = 501
HARMLESS = ("/agents/validate", "/mem0/search")
ACTS = "calls an endpoint that acts on the whole server, with an empty body"
PLACEHOLDER = re.compile(r"\{\w+\}")
ENDPOINTS = {
    "3.5": "GET /agents, POST /agents, GET /agents/{id}, PUT /agents/{id}, DELETE /agents/{id}, GET /agents/templates, "
    "POST /agents/validate, POST /agents/reload, POST /agents/{id}/reload, GET /agents/{id}/prompt, "
    "GET /agents/{id}/mcp, POST /agents/{id}/mcp/{name}, PUT /agents/{id}/mcp/{name}, DELETE /agents/{id}/mcp/{name}, "
    "GET /agents/{id}/mcp/available",
    "3.6": "GET /skills/global, GET /skills/instance/{agent_id}, POST /skills/install, POST /skills/uninstall, "
    "POST /skills/toggle, POST /skills/update_content, GET /skills/detail/{name}, "
    "GET /skills/file/{name}/{type}/{file}, POST /skills/upload",
    "3.7": "GET /tools, GET /tools/{name}, POST /tools/register, DELETE /tools/{name}, POST /tools/execute, "
    "POST /tools/{name}/invoke, GET /tools/schemas, POST /tools/mcp/register, GET /tools/mcp, GET /tools/mcp/{name}, "
    "PUT /tools/mcp/{name}, DELETE /tools/mcp/{name}",
    "3.9": "GET /settings, PUT /settings, GET /settings/status, GET /settings/schema",
    "3.10": "POST /mem0/search, GET /mem0/user/{user_id}, POST /mem0/add, POST /mem0/batch-update, "
    "DELETE /mem0/memory/{id}, DELETE /mem0/user/{user_id}",
    "3.11": "GET /tasks, GET /tasks/{name}, POST /tasks/{name}/run, POST /tasks/{name}/batch, "
    "GET /tasks/scheduled/config, GET /tasks/scheduled/status",
    "3.12": "GET /docs/structure, GET /docs/content/{path}",
}


ELSEWHERE = {"3.5": 10, "3.6": 9, "3.9": 4, "3.10": 6, "3.11": 6}
WITH_CASES = {f"ZF-HTTP-{section}-{number:02}" for section, rows in ELSEWHERE.items() for number in range(1, rows + 1)}
"""Rows that have cases in modules of their own."""


def _case(name: str, method: str, path: str, *accepted: int) -> Case:
    """A case that calls the endpoint with ids nobody has and an empty body."""

    async def check(exam: ZenfluxExamination) -> None:
        if not exam.profile.management:
            raise NotTestable("the profile does not allow to call the management endpoints")
        place = PLACEHOLDER.sub(lambda _: f"examined-{uuid4().hex}", path)
        answer = await exam.ask(method, place, {} if method in ("POST", "PUT") else ...)
        is_right = answer.is_done or answer.code in accepted
        codes = ", ".join(map(str, accepted))
        expect.that(is_right, f"{method} {place} to succeed or to be one of {codes}", answer.reply.told)

    acts = method != "GET" and "{" not in path and path not in HARMLESS
    words = "_".join(re.findall(r"\w+", f"{method.lower()} {path}"))
    sentence = f"{method} {path} answers in the wrapper; 501 is allowed."
    return Case(f"management.{words}", (name,), sentence, check, ACTS if acts else None)


def _cases(section: str, endpoints: str) -> list[Case]:
    found = []
    for number, endpoint in enumerate(endpoints.split(", "), 1):
        method, path = endpoint.split()
        unknown = (404,) if "{" in path else ()
        accepted = (400, 409, 422, NOT_IMPLEMENTED, *unknown)
        found.append(_case(f"ZF-HTTP-{section}-{number:02}", method, path, *accepted))
    return found


CASES: tuple[Case, ...] = tuple(
    case
    for section, endpoints in ENDPOINTS.items()
    for case in _cases(section, endpoints)
    if case.requirements[0] not in WITH_CASES
)
VOICE_CASES: tuple[Case, ...] = (
    _case("ZF-RT-05", "GET", "/realtime/sessions", 404, NOT_IMPLEMENTED),
    _case("ZF-RT-06", "DELETE", "/realtime/sessions/{id}", 404, NOT_IMPLEMENTED),
)
