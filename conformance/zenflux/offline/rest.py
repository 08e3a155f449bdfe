"""The REST half: wrapped answers, their codes, and the routes of the management sections."""

import re
from collections.abc import Iterator

from conformance.kit import expect
from conformance.offline.rule import Rule, rule
from conformance.offline.tape import Exchange
from conformance.zenflux.answer import wrapped
from conformance.zenflux.examination import BASE, SCHEMAS
from conformance.zenflux.management import NOT_IMPLEMENTED
from conformance.zenflux.offline.view import ZenfluxView

Found = Iterator[Exchange | str]
FIXED = ("search", "pending", "templates", "schemas", "mcp", "validate", "reload", "register", "execute")
VOICE = (("ZF-RT-05", "GET /realtime/sessions"), ("ZF-RT-06", "DELETE /realtime/sessions/{id}"))
PLACES = ("/conversations/search", "/human-confirmation/pending", "/agents/templates", "/tools/schemas", "/tools/mcp")
BY_NAME = ("/skills/install", "/skills/uninstall", "/skills/toggle", "/skills/update_content", "/tools/execute")
"""Places where the body names something, which may not exist."""
WELL = ("/health", "/health/live", "/health/metrics")
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


def _rest(view: ZenfluxView) -> Iterator[Exchange]:
    """Every whole answer of the REST half that is neither a stream nor a file."""
    for item in view.tape.exchanges:
        is_ours = item.path.startswith((BASE, "/health"))
        if is_ours and item.is_whole and not item.is_stream and not item.is_socket and item.method != "OPTIONS":
            yield item


@rule("ZF-GEN-03", needs="answer of the REST half")
def every_answer_is_wrapped(view: ZenfluxView) -> Found:
    """Every success is {code 200, message, data}."""
    for item in _rest(view):
        is_file = item.method == "GET" and item.path.startswith(f"{BASE}/files/")
        if (item.status or 0) < 300 and not is_file:
            yield item
            answer = wrapped(item.reply, SCHEMAS)
            expect.that(answer.is_done or answer.code >= 400, "code 200", item.reply.told)


@rule("ZF-GEN-04", needs="refusal of the REST half")
def every_error_is_wrapped(view: ZenfluxView) -> Found:
    """Every error is {code, message, data null}, code being the kind of error."""
    for item in _rest(view):
        if (item.status or 0) >= 400:
            yield item
            answer = wrapped(item.reply, SCHEMAS)
            expect.that(answer.code >= 400, "a code of 4xx or 5xx", item.reply.told)
            expect.equal("data", None, answer.body["data"])


@rule("G-ZF-23", needs="refusal of the REST half")
def the_status_says_what_the_code_says(view: ZenfluxView) -> Found:
    """The HTTP status of an error is its code."""
    for item, answer in view.answered:
        if answer.code >= 400:
            yield item
            expect.equal("status and code", item.status, answer.code)


@rule("G-ZF-22", needs="answer to GET /health")
def wrapped_objects_are_laid_out_too(view: ZenfluxView) -> Found:
    """What the published front end reads unwrapped stands beside the wrapper."""
    for item, answer in view.answered:
        if item.path == "/health" and answer.is_done:
            yield item
            expect.equal("status of /health", "ok", answer.body.get("status"))


@rule("G-ZF-35", needs="request for a place with a fixed name")
def names_are_not_taken_for_ids(view: ZenfluxView) -> Found:
    """/conversations/search and the like are places of their own, not unknown ids."""
    for item, answer in view.answered:
        if item.method == "GET" and item.path.removeprefix(BASE) in PLACES:
            yield item
            expect.that(answer.code != 404, f"{item.path} not to be taken for an id", item.reply.told)


def _managed(name: str, method: str, path: str, *accepted: int) -> Rule:
    """A rule that an endpoint answers in the wrapper, with a success or one of these codes."""
    route = f"{method} {PLACEHOLDER.sub('{}', path)}"

    def check(view: ZenfluxView) -> Found:
        for item, names in view.tape.of(f"{method} {BASE}{PLACEHOLDER.sub('{}', path)}"):
            is_other = item.is_stream or (names and names[-1] in FIXED and path.endswith("}"))
            if item.is_whole and not is_other:
                yield item
                answer = wrapped(item.reply, SCHEMAS)
                is_right = answer.is_done or answer.code in accepted
                expect.that(is_right, f"a success or one of {accepted}", item.reply.told)

    check.__name__ = "_".join(re.findall(r"\w+", f"{method.lower()} {path}"))
    or_not = "; 501 is allowed" if NOT_IMPLEMENTED in accepted else ", and is implemented"
    check.__doc__ = f"{method} {path} answers in the wrapper{or_not}."
    return rule(name, needs=f"answer to {route}")(check)


def _endpoints() -> Iterator[Rule]:
    for section, endpoints in ENDPOINTS.items():
        for number, endpoint in enumerate(endpoints.split(", "), 1):
            (method, path), name = endpoint.split(), f"ZF-HTTP-{section}-{number:02}"
            unknown = (404,) if "{" in path or path in BY_NAME else ()
            yield _managed(name, method, path, 400, 401, 403, 409, 413, 422, *unknown)
    for name, endpoint in VOICE:
        method, path = endpoint.split()
        yield _managed(name, method, path, 404, NOT_IMPLEMENTED)


MANAGED = tuple(_endpoints())


def _well(name: str, path: str) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for item, _ in view.tape.of(f"GET {path}"):
            if item.is_whole:
                yield item
                wrapped(item.reply, SCHEMAS).done()

    check.__name__ = f"get{path.replace('/', '_')}"
    check.__doc__ = f"GET {path} is answered with 200 in the wrapper."
    return rule(name, needs=f"answer to GET {path}")(check)


HEALTH = tuple(_well(f"ZF-HTTP-3.13-0{place}", path) for place, path in enumerate(WELL, 1))
