"""Reads the conversations that a ZenFlux server has: its list, and the messages of each."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

import gateway.model as m
from adapters.zenflux.bodies import ConversationBody, ImageBlock, ResultBlock
from gateway.client import (
    PAGE,
    HttpClient,
    PastMessage,
    PastTurns,
    members,
    objects,
    parse_timestamp,
    read_usage,
    upstream_status,
)
from gateway.errors import GatewayError, NotFound
from gateway.ids import Mint, make_mint
from gateway.json_values import JsonLimitExceeded, JsonObject, read_json
from gateway.ports import PastItem, PastSession, RemoteAddress, RemoteSession
from mappings.language import Bindings

from .readers import ZENFLUX, read_body, read_list, unwrap
from .requests import CLIENT_USER

UNKNOWN = 404
SUBAGENTS = "words of sub-agents, plans and questions as such: ZenFlux keeps messages, calls and results"
OPEN_CALLS = "calls that were left open: they get a result here, that their turn has ended"
RUNNING = "processing"
"""The status of a message that is still being written."""
NO_PLACE = "blocks of types that ZenFlux does not document"


class PastSessions:
    """See `gateway.ports.PastSessions`. A server lists the conversations of one user."""

    def __init__(self, address: RemoteAddress, user: str = "", mint: Mint | None = None) -> None:
        self._upstream, self._user = HttpClient.at(address), user or CLIENT_USER
        self._mint = mint or make_mint()

    async def page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        offset = int(name or 0)
        query = {"user_id": self._user, "limit": str(PAGE), "offset": str(offset)}
        response = unwrap(await self._upstream.json("GET", "/conversations", query=query))
        rows = read_list("list.conversations", response)
        return [*map(_session, rows)], str(offset + len(rows)) if len(rows) == PAGE else None

    async def read(self, session_id: str) -> PastSession:
        place = f"/conversations/{session_id}"
        try:
            fields = read_body(ConversationBody.row, unwrap(await self._upstream.json("GET", place)))
        except GatewayError as error:
            if upstream_status(error) == UNKNOWN:
                raise NotFound(error.message) from None
            raise
        history, known = StoredMessageReader(self._mint), set[str]()
        while True:
            query = {"limit": str(PAGE), "offset": str(len(known)), "order": "asc"}
            page = await self._upstream.json("GET", f"{place}/messages", query=query)
            rows = read_list("list.messages", unwrap(page))
            new = [row for row in rows if str(row["id"]) not in known]  # some servers have no pages
            known.update(str(row["id"]) for row in new)
            for row in new:
                history.take(row)
            if len(rows) < PAGE or not new:
                break
        history.note_open_calls()
        return PastSession(
            session=_session(fields | {"session_id": session_id}), metadata=members(fields["metadata"]),
            turns=history.turns.end(), unseen=history.unseen, is_running=history.is_running,
        )

    async def close(self) -> None:
        await self._upstream.close()


def _session(fields: Bindings) -> RemoteSession:
    return RemoteSession(
        session_id=fields["session_id"] or "", agent=fields["agent"], title=fields["title"], status=fields["status"],
        updated_at=_seconds(fields["updated_at"]), created_at=_seconds(fields["created_at"]),
    )


def _seconds(at: object) -> float | None:
    return float(at) if isinstance(at, int | float) else parse_timestamp(at)


class StoredMessageReader:
    """Makes turns of stored messages; each run of a server is a turn."""

    def __init__(self, mint: Mint) -> None:
        self.turns = PastTurns()
        self._mint = mint
        self.is_running = False
        """Whether the last message is still being written."""
        self._unseen = dict.fromkeys([SUBAGENTS])

    @property
    def unseen(self) -> Sequence[str]:
        return tuple(self._unseen)

    def take(self, row: Bindings) -> None:
        at, message_id, content = _seconds(row["at"]), str(row["id"]), stored_content(row["content"])
        self.is_running = row["status"] == RUNNING
        if row["role"] == m.Role.USER:
            self.note_open_calls()
            self.turns.begin()
            said = content if isinstance(content, str) else self._parts(objects(content))
            self.turns.add([PastItem(m.SendMessage(content=said, message_id=message_id), at)])
            return
        about = members(row["metadata"])
        self.turns.name(about.get("session_id"))
        blocks = objects(content)
        results = [block for block in blocks if ZENFLUX.table.is_object(ResultBlock.row, block)]
        self.turns.add_message(PastMessage(
            content=content if isinstance(content, str) else self._parts(one for one in blocks if one not in results),
            message_id=message_id, at=at,
            model=about.get("model"), outcome=outcomes().get(str(row["status"]), m.Outcome.COMPLETED),
            usage=read_usage(members(about.get("usage"))),
        ), self._mint)
        for block in results:
            result = read_body(ResultBlock.row, block)
            self.turns.add_result(result["call_id"] or "", result["text"] or "", at, is_error=bool(result["is_error"]))

    def note_open_calls(self) -> None:
        if self.turns.open_calls:
            self._unseen[OPEN_CALLS] = None

    def _parts(self, blocks: Iterable[JsonObject]) -> tuple[m.AnyPart, ...]:
        found = [(block, ZENFLUX.table.read_part(block) or _image(block)) for block in blocks]
        if any(part is None for _, part in found):
            self._unseen[NO_PLACE] = None
        return tuple(part for _, part in found if part is not None)


def stored_content(content: Any) -> Any:
    """The content of a message; some servers store its blocks as JSON in a text."""
    if not isinstance(content, str) or not content.startswith("[{"):
        return content
    try:
        blocks = read_json(content)
    except (orjson.JSONDecodeError, JsonLimitExceeded):
        return content
    is_blocks = isinstance(blocks, list) and all(
        isinstance(one, dict) and (ZENFLUX.table.read_part(one) or ZENFLUX.table.is_object(ResultBlock.row, one))
        for one in blocks)
    return blocks if is_blocks else content


def outcomes() -> dict[str, m.Outcome]:
    return ZENFLUX.table.meanings("outcome@message", m.Outcome)


def _image(block: JsonObject) -> m.ImagePart | None:
    fields: dict[str, Any] | None = ZENFLUX.read_fitting(ImageBlock.row, block)
    if fields is None or not isinstance(fields["image_data"], str):
        return None
    url, kind = fields["image_data"], fields["media_type"]
    inline = f"data:{kind};base64,{url}" if fields["image_source"] == "base64" else url
    return m.ImagePart(url=inline, media_type=kind)
