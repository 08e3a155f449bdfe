"""Models of what ZenFlux clients send about tasks."""

from typing import Any

from pydantic import Field

from gateway.http import WireModel


class TaskStart(WireModel):
    """Start a task by hand; a background job works on a conversation."""

    user_id: str | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    params: dict[str, Any] | None = None
    wait: bool = False


class TaskBatch(WireModel):
    """Start a background job for all conversations of some hours."""

    since_hours: int = Field(24, ge=1, le=168)
    max_concurrent: int = Field(5, ge=1, le=20)
    params: dict[str, Any] | None = None
