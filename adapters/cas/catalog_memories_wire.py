"""What CAS clients send about memory stores and memories."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from .catalog_wire import Metadata, MetadataChange, Name, Wire, Words

MAX_MEMORY = 100 * 1024


class NewMemoryStore(Wire):
    name: Name
    description: Words | None = None
    metadata: Metadata | None = None


class MemoryStoreChange(Wire):
    name: Name | None = None
    description: Words | None = None
    metadata: MetadataChange | None = None


def _a_path(path: str) -> str:
    steps = path.strip("/").split("/")
    if not path.strip("/") or any(step in ("", ".", "..") for step in steps):
        raise ValueError("must be names parted by '/', without '.' and '..'")
    return path


MemoryPath = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_a_path)]


class NewMemory(Wire):
    path: MemoryPath
    content: str = Field(max_length=MAX_MEMORY)
    metadata: Metadata | None = None


class Precondition(Wire):
    type: Literal["content_sha256"]
    content_sha256: str | None = None


class MemoryChange(Wire):
    path: MemoryPath | None = None
    content: str | None = Field(None, max_length=MAX_MEMORY)
    metadata: MetadataChange | None = None
    content_sha256: str | None = None
    precondition: Precondition | None = None

    @property
    def expected(self) -> str | None:
        """The content the client believes it is changing."""
        return self.content_sha256 or (self.precondition.content_sha256 if self.precondition else None)
