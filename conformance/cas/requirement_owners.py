"""Owners of failures: the requirement to which each body, each event and each of their members belongs."""

import re
from pathlib import Path
from typing import Any

from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed
from conformance.kit.schemas import Schemas

SCHEMAS = Schemas(Path(__file__).parent / "schemas")
COMMON, IDS, PAGES, ERRORS = "CAS-EV-01", "CAS-GEN-06", "CAS-GEN-04", "CAS-GEN-02"
BODIES = {
    "accepted": "CAS-EV-02",
    "agent": "CAS-RES-01",
    "agents": "CAS-RES-01",
    "canceling": "CAS-SESS-13",
    "credential": "CAS-RES-08",
    "deleted": "CAS-SESS-12",
    "environment": "CAS-RES-05",
    "environment_deleted": "CAS-RES-05",
    "environments": "CAS-RES-05",
    "error": ERRORS,
    "events": PAGES,
    "file": "CAS-RES-06",
    "file_content": "CAS-RES-06",
    "files": "CAS-RES-06",
    "made": IDS,
    "memory": "CAS-RES-09",
    "memory_store": "CAS-RES-09",
    "models": "CAS-RES-07",
    "page": PAGES,
    "resource": "CAS-SESS-14",
    "resources": "CAS-SESS-14",
    "session": "CAS-SESS-01",
    "sessions": PAGES,
    "thread": "CAS-THR-01",
    "threads": PAGES,
    "vault": "CAS-RES-08",
}
EVENTS = {
    "agent.artifact_delivered": "CAS-EV-19",
    "agent.custom_tool_use": "CAS-EV-14",
    "agent.mcp_tool_result": "CAS-EV-14",
    "agent.mcp_tool_use": "CAS-EV-14",
    "agent.message": "CAS-EV-14",
    "agent.thinking": "CAS-EV-14",
    "agent.thread_message_received": "CAS-THR-03",
    "agent.thread_message_sent": "CAS-THR-03",
    "agent.tool_result": "CAS-EV-14",
    "agent.tool_use": "CAS-EV-14",
    "event_delta": "CAS-SSE-08",
    "event_start": "CAS-SSE-08",
    "session.deleted": "CAS-EV-19",
    "session.error": "CAS-EV-18",
    "session.status_idle": "CAS-EV-13",
    "session.status_running": "CAS-SESS-03",
    "session.thread_created": "CAS-THR-03",
    "session.thread_status_idle": "CAS-THR-03",
    "session.thread_status_running": "CAS-THR-03",
    "session.thread_status_terminated": "CAS-THR-03",
    "span.model_request_end": "CAS-EV-17",
    "span.model_request_start": "CAS-EV-17",
    "user.custom_tool_result": "CAS-EV-07",
    "user.define_outcome": "CAS-EV-08",
    "user.interrupt": "CAS-EV-05",
    "user.message": "CAS-EV-03",
    "user.tool_confirmation": "CAS-EV-06",
}
RAW_PIECES = re.compile(r"agent\.(message|content_block)_(start|delta|stop)")
OF_EVERY_EVENT = re.compile(r"/(id|session_id|created_at|processed_at|schema_version|type)\b")
LACKS = re.compile(r"/: \"(id|session_id|created_at|processed_at|schema_version|type)\" is a required property")
NO_OBJECT = re.compile(r"/data/\d+: (?!.* is a required property)")
"""An item of a list is wrong as a whole, so that no other look at it says how."""
SESSION_PARTS = {"state": "CAS-SESS-03", "file": "CAS-SESS-07", "repository": "CAS-SESS-08"}
"""Who speaks of the values of which part of a session."""
OF_SESSIONS = re.compile(
    r"(/data/\d+)?((?P<state>/(turn_)?status: .* is not one of )|(?P<file>/resources/\d+/path: )"
    r"|(?P<repository>/resources/\d+/(url|mount_path|authorization_token): ))"
)
FORMS = re.compile(r"\S*(id|_ids/\d+|_at): (.* does not match |\".*\" is not valid under any )")
MADE = frozenset({"agent", "environment", "file", "made", "memory_store", "vault"})
"""What is made at a place of its own, and goes by an id there."""


def of_event(kind: Any) -> str:
    """The requirement that speaks of events of this type."""
    return "CAS-SSE-09" if RAW_PIECES.fullmatch(str(kind)) else EVENTS.get(str(kind), COMMON)


def of_posted(kinds: list[str]) -> str:
    """The requirement by which events of these types are accepted."""
    return of_event(kinds[0]) if len(kinds) == 1 else "CAS-EV-02"


def of_problem(schema: str, problem: str) -> str | None:
    """Who is to blame for a problem that a schema finds; None if another look at the same thing will find it."""
    if problem.startswith("/turn_id: ") and not FORMS.match(problem):
        return "CAS-EV-10"
    if FORMS.match(problem):
        return IDS
    if schema in MADE and problem.startswith("/id: "):
        return IDS
    if schema.startswith("event."):
        is_common = OF_EVERY_EVENT.match(problem) or LACKS.match(problem)
        return COMMON if is_common else of_event(schema.removeprefix("event."))
    if schema in ("events", "accepted") and problem.startswith("/data/"):
        return COMMON if NO_OBJECT.match(problem) else None
    if schema in ("session", "sessions") and (found := OF_SESSIONS.match(problem)):
        return next(owner for name, owner in SESSION_PARTS.items() if found[name])
    if schema == "sessions" and problem.startswith("/data/"):
        return "CAS-SESS-02"
    if schema in ("thread", "threads") and re.match(r"(/data/\d+)?/stop_reason", problem):
        return "CAS-THR-04"
    if schema == "threads" and problem.startswith("/data/"):
        return BODIES["thread"]
    return BODIES.get(schema, COMMON)


def note_misfits(departures: Departures, schemas: Schemas, schema: str, value: Any, what: str) -> None:
    """Note what keeps the value from fitting the schema, under who is to blame for it, and go on."""
    try:
        schemas.fit(schema, value, what)
    except Failed as failure:
        for problem in schemas.problems(schema, value):
            owner = of_problem(schema, problem)
            if owner == "CAS-SESS-02" and any(item.owner == "CAS-SESS-01" for item in departures.noted):
                continue  # a list shows what the session itself lacks
            if owner is not None:
                departures.note(owner, failure.expected, f"{problem}\nin {expect.show(value)}")


def need(schema: str, value: Any, *names: str) -> None:
    """Expect these members to fit the schema: what is to be judged by them cannot be judged without."""
    for problem in SCHEMAS.problems(schema, value):
        if problem.startswith(tuple(f"/{name}" for name in names)):
            expect.fail(f"{', '.join(names)} of a {schema} to fit the schema", problem, of_problem(schema, problem))
