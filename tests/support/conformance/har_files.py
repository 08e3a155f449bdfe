"""HAR files made of recordings."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

START = datetime(2026, 1, 1, tzinfo=UTC)


def as_har(path: Path) -> dict[str, Any]:
    """The recording as a browser would have saved it."""
    entries: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines()[1:-1]:
        told = orjson.loads(line)
        if told["type"] == "request":
            entries[told["exchange"]] = _begun(told)
        else:
            _followed(entries[told["exchange"]], told)
    return {"log": {"version": "1.2", "entries": list(entries.values())}}


def _begun(told: dict[str, Any]) -> dict[str, Any]:
    query = f"?{told['query']}" if told.get("query") else ""
    request = {"method": told["method"], "url": f"http://h{told['path']}{query}", "headers": _headers(told)}
    started = (START + timedelta(seconds=told["at"])).isoformat()
    response = {"status": 0, "headers": [], "content": {}}
    return {"startedDateTime": started, "time": 0, "request": request, "response": response, "_at": told["at"]}


def _headers(told: dict[str, Any]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in told["headers"]]


def _followed(entry: dict[str, Any], told: dict[str, Any]) -> None:
    response = entry["response"]
    match told["type"]:
        case "request.body":
            encoding = {"encoding": "base64"} if "base64" in told else {}
            entry["request"]["postData"] = {"text": told.get("text", told.get("base64")), **encoding}
        case "response":
            response |= {"status": told["status"], "headers": _headers(told)}
            entry["_answered"] = told["at"]
        case "body" | "event":
            content = response["content"]
            content["text"] = content.get("text", "") + told.get("text", told.get("base64", ""))
            content |= {"encoding": "base64"} if "base64" in told else {}
        case "frame":
            kind = "send" if told["from"] == "client" else "receive"
            frame = {"type": kind, "time": START.timestamp() + told["at"], "opcode": 1 if "text" in told else 2}
            data = told.get("text", told.get("base64"))
            entry.setdefault("_webSocketMessages", []).append(frame | {"data": data})
        case "end":
            entry["time"] = (told["at"] - entry["_at"]) * 1000
            entry["timings"] = {"receive": (told["at"] - entry.get("_answered", told["at"])) * 1000}
            entry |= {"_error": "net::ERR_ABORTED"} if told["ending"] == "left" else {}
