"""What the models of CAS share: a model that keeps unknown members, and the limits of names and metadata."""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from gateway.http import WireModel
from gateway.json_values import JsonObject

MAX_KEYS, MAX_KEY, MAX_VALUE = 16, 64, 512


class OpenWireModel(WireModel):
    """As `WireModel`, but unknown members are kept and given back."""

    model_config = ConfigDict(extra="allow")


def _within_limits(metadata: JsonObject) -> JsonObject:
    if len(metadata) > MAX_KEYS:
        raise ValueError(f"must have at most {MAX_KEYS} keys, not {len(metadata)}")
    for key, value in metadata.items():
        if len(key) > MAX_KEY:
            raise ValueError(f"the key '{key[:MAX_KEY]}…' must have at most {MAX_KEY} characters, not {len(key)}")
        if isinstance(value, str) and len(value) > MAX_VALUE:
            raise ValueError(f"the value of '{key}' must have at most {MAX_VALUE} characters, not {len(value)}")
    return metadata


Metadata = Annotated[dict[str, str], AfterValidator(_within_limits)]
MetadataChange = Annotated[dict[str, str | None], AfterValidator(_within_limits)]
"""A key that is null is taken away."""


class MetadataLimits(WireModel):
    """Metadata after a change, for its limits."""

    metadata: Metadata


Name = Annotated[str, Field(min_length=1, max_length=256)]
Description = Annotated[str, Field(max_length=2048)]
HttpAddress = Annotated[str, Field(max_length=2048, pattern=r"^https?://")]


CONFIGURED_PREFIX = "agent_"
"""What the ids of agents of the settings begin with."""
NOTES_STORE = "memstore_notes"
"""The id of the memory store of the memories that dialects share, the same for every user."""
DEFAULT_ENVIRONMENT = "env_default"
"""The environment of sessions that other dialects made. It always exists, and is in no list."""
