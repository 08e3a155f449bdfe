"""Cleanup of one user's resources: they are found in the server's lists, even if an answer did not name them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.kit.expect import Failed
from conformance.kit.http import HttpClient, Reply
from conformance.zenflux.rest_answer import listed

MOST = "100"
LIST = "a list of what a user has"


async def belongings(http: HttpClient, base: str, user: str) -> list[str]:
    """The paths of the active sessions and the conversations of this user, as far as the server lists them."""
    sessions = await _items(http, f"{base}/sessions", {}, "sessions")
    conversations = await _items(http, f"{base}/conversations", {"user_id": user, "limit": MOST}, "conversations")
    names = [item.get("session_id") for item in sessions if item.get("user_id") == user]
    owned = [item.get("id") for item in conversations if item.get("user_id") == user]
    return [*(f"/session/{name}" for name in names if name), *(f"/conversations/{name}" for name in owned if name)]


async def _items(http: HttpClient, path: str, query: dict[str, str], name: str) -> list[dict[str, Any]]:
    """The objects of a list; none if there is no making sense of it, or if the server has left such a request open."""
    if http.waits.is_vain(LIST):
        return []
    try:
        with http.waits.goal(LIST):
            body = (await http.ask("GET", path, query=query)).json()
        return listed(body.get("data") if isinstance(body, dict) else body, name)
    except Failed:
        return []


@dataclass(frozen=True)
class Undo:
    """A request after which something that a case has made is gone."""

    what: str
    method: str
    path: str
    json: Any = ...


async def undo_all(http: HttpClient, base: str, undos: Sequence[Undo], is_done: Callable[[Reply], bool]) -> None:
    """Undo one thing after the other; whatever cannot be undone is told in the transcript as left behind."""
    http.transcript.left += [undo.what for undo in undos]
    for undo in undos:
        try:
            if is_done(await http.ask(undo.method, base + undo.path, undo.json)):
                http.transcript.left.remove(undo.what)
        except Failed as error:
            http.transcript.remark(f"clearing away: {error}")
