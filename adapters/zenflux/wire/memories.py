"""Models of what ZenFlux clients send about memories."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from gateway.http import WireModel, dumps

UserId = Annotated[str, Field(min_length=1, max_length=256)]
MAX_METADATA_BYTES = 4096


class MemoryMetadata(WireModel):
    """What a client keeps with a memory; `type` is the gateway's own, too."""

    metadata: dict[str, Any] | None = None

    @field_validator("metadata")
    @classmethod
    def _small(cls, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        if metadata is not None and len(dumps(metadata)) > MAX_METADATA_BYTES:
            raise ValueError(f"must have at most {MAX_METADATA_BYTES} bytes")
        return metadata


class MemorySearch(WireModel):
    user_id: UserId
    query: str = Field(min_length=1, max_length=10_000)
    limit: int = Field(10, ge=1, le=50)


class MemoryMessage(WireModel):
    role: Literal["user", "assistant", "system", "tool"]
    content: str = Field(max_length=100_000)


class NewMemories(MemoryMetadata):
    """Messages to remember; what the user says is kept word for word."""

    user_id: UserId
    messages: list[MemoryMessage] = Field(min_length=1, max_length=100)


class MemoryUpdate(MemoryMetadata):
    id: str
    memory: str | None = Field(None, min_length=1, max_length=500)


class MemoryBatch(WireModel):
    since_hours: int = Field(24, ge=1, le=168)
    max_concurrent: int = Field(5, ge=1, le=20)
    updates: list[MemoryUpdate] | None = Field(None, max_length=1000)
