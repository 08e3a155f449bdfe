"""What a CAS client reads of a conversation, and what an import of it loses."""

import re
from typing import Any

import orjson

EVENTS = "/api/v1/cloud/sessions/{}/events?limit=100&order="
PATHS = ("/api/v1/cloud/sessions/{}", f"{EVENTS}asc", f"{EVENTS}desc")
EVENT_ID = re.compile(rb"evt_[0-9a-f]+_[0-9]+(-[a-z0-9]+)?")


def comparable(bodies: list[Any]) -> list[Any]:
    """Without what the import declares as lost: the ids of events, whose order counts, and the usage of sub-agents."""
    session, *pages = bodies
    session["agent"] = session["agent"]["name"]  # the agent of the other server
    events = [event for page in pages for event in page["data"]]
    if any(event["type"] == "session.thread_created" for event in events):
        del session["usage"]
        for event in events:
            event.pop("usage", None)
    numbers: dict[bytes, bytes] = {}
    found = EVENT_ID.sub(lambda one: numbers.setdefault(one[0], b"event %d" % len(numbers)), orjson.dumps(events))
    return [session, *orjson.loads(found)]
