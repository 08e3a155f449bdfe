"""What a Quill case is given: talks to write in, which are deleted afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from conformance.kit.cleanup import cleared, delete_all
from conformance.kit.http import HttpClient, Reply
from conformance.kit.schemas import Schemas

SCHEMAS = Schemas(Path(__file__).parent / "schemas")


class QuillProfile(BaseModel):
    """What the examiners must be told about a server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    line: str = "hello"


class QuillExamination:
    """One case's view of the server."""

    def __init__(self, http: HttpClient, profile: QuillProfile) -> None:
        self.http = http
        self.profile = profile
        self._made: list[str] = []

    async def create(self) -> Reply:
        """POST /talks, whatever comes of it."""
        reply = await self.http.ask("POST", "/talks")
        if 200 <= reply.status < 300 and reply.has("talk"):
            self._made.append(str(reply.json()["talk"]))
        return reply

    async def clear_away(self) -> None:
        await delete_all(self.http, [f"/talks/{talk}" for talk in self._made], self.http.timeout)


@asynccontextmanager
async def opening(http: HttpClient, profile: QuillProfile) -> AsyncIterator[QuillExamination]:
    """Set up one case, and clear away after it whatever comes of it."""
    examination = QuillExamination(http, profile)
    try:
        yield examination
    finally:
        await cleared(http, examination.clear_away)
