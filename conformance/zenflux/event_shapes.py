"""Whose the members of events and of objects are: a value that does not fit its schema is charged to these."""

from collections.abc import Mapping
from typing import Any

ENVELOPE, ENVELOPE_MEMBERS = (
    "ZF-ENV-01",
    {
        "/event_uuid": "ZF-ENV-02",
        "/seq": "ZF-ENV-03",
        "/type": "ZF-ENV-04",
        "/session_id": "ZF-ENV-05",
        "/conversation_id": "ZF-ENV-05",
        "/message_id": "ZF-ENV-06",
        "/timestamp": "ZF-ENV-07",
        "/data": "ZF-ENV-08",
    },
)
"""An envelope lacks members (ENV-01), or one of them is not what it must be."""
EVENTS = {
    "session_start": "ZF-EV-01",
    "session_stopped": "ZF-EV-02",
    "session_end": "ZF-EV-03",
    "ping": "ZF-EV-04",
    "conversation_start": "ZF-EV-05",
    "conversation_delta": "ZF-EV-06",
    "conversation_stop": "ZF-EV-10",
    "message_start": "ZF-EV-11",
    "message_delta": "ZF-EV-14",
    "message_stop": "ZF-EV-23",
    "content_start": "ZF-EV-24",
    "content_delta": "ZF-EV-30",
    "content_stop": "ZF-EV-34",
    "error": "ZF-EV-35",
    "rollback_options": "ZF-EV-37",
    "rollback_completed": "ZF-EV-38",
    "long_running_confirm": "ZF-EV-39",
}
EVENT_MEMBERS = {
    "conversation_delta": {
        "/data/title": "ZF-EV-07",
        "/data/metadata": "ZF-EV-08",
        "/data/compressed": "ZF-EV-09",
    },
    "message_start": {
        "/message/role": "ZF-EV-12",
        "/message/model": "ZF-EV-12",
        "/message/usage": "ZF-EV-12",
    },
}
BLOCKS = {
    "text": "ZF-EV-25",
    "thinking": "ZF-EV-26",
    "tool_use": "ZF-EV-27",
    "tool_result": "ZF-EV-28",
    "server_tool_use": "ZF-EV-29",
    "image": "ZF-EV-24",
}
"""The kinds of blocks, and whose the start of each of them is."""
OBJECTS = {
    "conversation": "ZF-TYPE-05",
    "message": "ZF-TYPE-06",
    "session_info": "ZF-TYPE-04",
    "upload": "ZF-HTTP-3.4-01",
}
"""The objects of the specification that calls answer with, and whose they are, whichever call shows them."""
MISLEADING = frozenset({"ZF-TYPE-01"})
"""Blocks that are not kept as they must be do not show what is kept."""
OBJECT_MEMBERS = {"message": {"/content/": "ZF-TYPE-01"}}


def whose(problem: str, owner: str, members: Mapping[str, str] | None = None) -> str:
    """The requirement that a problem of a value belongs to: that of the member it is in, or else the owner."""
    path = problem.partition(":")[0]
    return next((name for start, name in (members or {}).items() if path.startswith(start)), owner)


def members_of(payload: Mapping[str, Any]) -> Mapping[str, str]:
    """Whose the members of one event are, by the beginnings of their paths, where they are not the event's."""
    if payload.get("type") == "content_start":
        data = payload.get("data")
        block = data.get("content_block") if isinstance(data, dict) else None
        kind = block.get("type") if isinstance(block, dict) else None
        return {"/data/content_block": BLOCKS[kind]} if isinstance(kind, str) and kind in BLOCKS else {}
    return EVENT_MEMBERS.get(str(payload.get("type")), {})
