"""Cards: HTML that a tool has returned, in a response of its own that a browser shuts off from everything else."""

from aiohttp import web
from msgspec import Struct

import gateway.model as m
from gateway.errors import NotFound
from gateway.http import OWNER, Answers, json_response, parse_whole_number, public

from .operations import ConsoleServices, Operation
from .static_files import PAGE

CARD = "application/x-dragoman-card"
"""The media type in the link of a card: no link of a file opens a card, and no link of a card opens a file."""
CARD_POLICY = "; ".join((
    "sandbox allow-scripts", "default-src 'none'", "script-src 'unsafe-inline'", "style-src 'unsafe-inline'",
    "img-src data: blob:", "font-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'",
))
CARD_HEADERS = {
    "Content-Security-Policy": CARD_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}


class CardLink(Struct, kw_only=True):
    """Where a page can show the card in a frame, for a while: a frame cannot send a key."""

    url: str
    expires_at: float


class CardRoutes:
    """One method per operation; `routes` has the response that a frame shows."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [Operation(
            method="POST", path="/sessions/{id}/cards/{seq}", handler=self.link, answer=CardLink, status=201,
            summary="Make a link to the HTML that a tool returned at this record, for a sandboxed frame.",
        )]

    def routes(self) -> list[web.RouteDef]:
        return [web.get(f"{PAGE}/card/{{link}}", self.show)]

    async def link(self, request: web.Request) -> web.Response:
        owner, session_id = request[OWNER], request.match_info["id"]
        seq = parse_whole_number(request.match_info["seq"])
        await self._html(owner, session_id, seq)
        word, expires_at = self._services.files.link(f"{session_id}/{seq}", owner, CARD)
        return json_response(CardLink(url=f"{PAGE}/card/{word}", expires_at=expires_at), 201)

    @public
    @Answers(str, media_type="text/html")
    async def show(self, request: web.Request) -> web.Response:
        link = self._services.files.read_link(request.match_info["link"])
        session_id, _, seq = link.file_id.partition("/")
        if link.media_type != CARD:
            raise NotFound("this is not a link to a card")
        html = await self._html(link.name, session_id, parse_whole_number(seq))
        return web.Response(text=html, content_type="text/html", headers=CARD_HEADERS)

    async def _html(self, owner: str, session_id: str, seq: int | None) -> str:
        """The HTML that the record has; `NotFound` if it has none."""
        if seq:
            records = await self._services.sessions.records(owner, session_id, seq - 1, 1)
            match records[0].event if records else None:
                case m.ToolReturned(meta={"ui": {"resourceHTML": str() as html}}):
                    return html
        raise NotFound(f"there is no card at this record of session '{session_id[:80]}'")
