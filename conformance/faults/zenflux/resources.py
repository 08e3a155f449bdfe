"""Health, models and files of the ZenFlux reference server."""

from pathlib import PureWindowsPath
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from aiohttp import web

from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Refusal, object_time

BASE = "/api/v1"
MODELS: list[Body] = [
    {"id": "reference", "type": "llm", "provider": "examiners"},
    {"id": "small", "type": "llm", "provider": "others"},
    {"id": "vectors", "type": "embedding", "provider": "examiners"},
]


class Resources:
    """Answers requests for health, models and files, and refuses what is not implemented."""

    def __init__(self, front: Front) -> None:
        self.front = front

    async def get_health(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply({"status": "ok"})

    async def get_models(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.models(request.query.get("type"), request.query.get("provider")))

    def models(self, kind: str | None, provider: str | None) -> list[Body]:
        return [item for item in MODELS if kind in (None, item["type"]) and provider in (None, item["provider"])]

    async def manage(self, request: web.Request) -> web.StreamResponse:
        raise Refusal(501, "NOT_IMPLEMENTED", "This is not implemented.")

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "multipart/form-data":
            raise Refusal(400, "VALIDATION_ERROR", "A file is sent as multipart/form-data.")
        file = (await request.post()).get("file")
        if not isinstance(file, web.FileField):
            raise Refusal(400, "VALIDATION_ERROR", "file is required.")
        return self.front.reply(self.upload(file))

    def upload(self, file: web.FileField) -> Body:
        name, place = self.file_name(file.filename), str(uuid4())
        about: dict[str, Any] = {"file_id": place, "file_name": name, "file_size": len(file.file.read())}
        about |= {"file_type": file.content_type, "file_url": f"/files/{place}/{quote(name)}"}
        return about | {"created_at": object_time()}

    def file_name(self, given: str) -> str:
        """The name without its folders."""
        return PureWindowsPath(given).name
