"""The REST half: wrapped answers, their codes, and the routes of the management sections."""

import re
from collections.abc import Iterator

from conformance.kit import expect
from conformance.offline.recording import Exchange
from conformance.offline.rule import Rule, rule
from conformance.zenflux.examination import SCHEMAS
from conformance.zenflux.management import NOT_IMPLEMENTED
from conformance.zenflux.offline.view import ZenfluxView
from conformance.zenflux.rest_answer import wrapped
from conformance.zenflux.rest_calls import BASE, ENDPOINTS, HEALTH, PLACEHOLDER

Found = Iterator[Exchange | str]
FIXED = ("search", "pending", "templates", "schemas", "mcp", "validate", "reload", "register", "execute")
VOICE = (("ZF-RT-05", "GET /realtime/sessions"), ("ZF-RT-06", "DELETE /realtime/sessions/{id}"))
PLACES = ("/conversations/search", "/human-confirmation/pending", "/agents/templates", "/tools/schemas", "/tools/mcp")
BY_NAME = ("/skills/install", "/skills/uninstall", "/skills/toggle", "/skills/update_content", "/tools/execute")
"""Places where the body names something, which may not exist."""
MANAGED_SECTIONS = ("3.5", "3.6", "3.7", "3.9", "3.10", "3.11", "3.12")


def _rest(view: ZenfluxView) -> Iterator[Exchange]:
    """Every whole answer of the REST half that is neither a stream nor a file."""
    for item in view.recording.exchanges:
        is_ours = item.path.startswith((BASE, "/health"))
        if is_ours and item.is_whole and not item.is_stream and not item.is_socket and item.method != "OPTIONS":
            yield item


def _code(item: Exchange) -> int:
    """What the body says of itself, if it says something."""
    code = item.json.get("code") if isinstance(item.json, dict) else None
    return code if isinstance(code, int) else 0


@rule("ZF-GEN-03", needs="answer of the REST half")
def every_answer_is_wrapped(view: ZenfluxView) -> Found:
    """Every success is {code 200, message, data}."""
    for item in _rest(view):
        is_file = item.method == "GET" and item.path.startswith(f"{BASE}/files/")
        if (item.status or 0) < 300 and not is_file:
            yield item
            with expect.owned("ZF-GEN-04" if _code(item) >= 400 else "ZF-GEN-03"):
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
        for item, names in view.recording.of(f"{method} {BASE}{PLACEHOLDER.sub('{}', path)}"):
            is_other = item.is_stream or (names and names[-1] in FIXED and path.endswith("}"))
            if item.is_whole and not is_other:
                yield item
                with expect.owned("ZF-GEN-03" if (item.status or 0) < 400 else "ZF-GEN-04"):
                    answer = wrapped(item.reply, SCHEMAS)
                is_right = answer.is_done or answer.code in accepted
                expect.that(is_right, f"a success or one of {accepted}", item.reply.told)

    check.__name__ = "_".join(re.findall(r"\w+", f"{method.lower()} {path}"))
    or_not = "; 501 is allowed" if NOT_IMPLEMENTED in accepted else ", and is implemented"
    check.__doc__ = f"{method} {path} answers in the wrapper{or_not}."
    return rule(name, needs=f"answer to {route}")(check)


def _endpoints() -> Iterator[Rule]:
    for section in MANAGED_SECTIONS:
        for number, endpoint in enumerate(ENDPOINTS[section].split(", "), 1):
            (method, path), name = endpoint.split(), f"ZF-HTTP-{section}-{number:02}"
            unknown = (404,) if "{" in path or path in BY_NAME else ()
            yield _managed(name, method, path, 400, 401, 403, 409, 413, 422, *unknown)
    for name, endpoint in VOICE:
        method, path = endpoint.split()
        yield _managed(name, method, path, 404, NOT_IMPLEMENTED)


MANAGED = tuple(_endpoints())


def _well(name: str, path: str) -> Rule:
    def check(view: ZenfluxView) -> Found:
        for item, _ in view.recording.of(f"GET {path}"):
            if item.is_whole:
                yield item
                with expect.owned("ZF-GEN-03" if (item.status or 0) < 400 else "ZF-GEN-04"):
                    answer = wrapped(item.reply, SCHEMAS)
                answer.done()

    check.__name__ = f"get{path.replace('/', '_')}"
    check.__doc__ = f"GET {path} is answered with 200 in the wrapper."
    return rule(name, needs=f"answer to GET {path}")(check)


WELL = tuple(_well(name, path) for path, name in HEALTH.items())
