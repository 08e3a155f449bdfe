"""Models of what CAS clients send about memory stores, memories, vaults and credentials."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator

from gateway.http import WireModel
from gateway.json_values import JsonObject

from .agents import Networking
from .common import Description, HttpAddress, Metadata, MetadataChange, Name

MAX_MEMORY = 100 * 1024


class NewMemoryStore(WireModel):
    name: Name
    description: Description | None = None
    metadata: Metadata | None = None


class MemoryStoreChange(WireModel):
    name: Name | None = None
    description: Description | None = None
    metadata: MetadataChange | None = None


def _check_path(path: str) -> str:
    steps = path.strip("/").split("/")
    if not path.strip("/") or any(step in ("", ".", "..") for step in steps):
        raise ValueError("must be names parted by '/', without '.' and '..'")
    return path


MemoryPath = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_check_path)]


class NewMemory(WireModel):
    path: MemoryPath
    content: str = Field(max_length=MAX_MEMORY)
    metadata: Metadata | None = None


class MemoryPrecondition(WireModel):
    type: Literal["content_sha256"]
    content_sha256: str | None = None


class MemoryChange(WireModel):
    path: MemoryPath | None = None
    content: str | None = Field(None, max_length=MAX_MEMORY)
    metadata: MetadataChange | None = None
    content_sha256: str | None = None
    precondition: MemoryPrecondition | None = None

    @property
    def expected(self) -> str | None:
        """The content the client believes it is changing."""
        return self.content_sha256 or (self.precondition.content_sha256 if self.precondition else None)


class NewVault(WireModel):
    display_name: Name
    metadata: Metadata | None = None


class VaultChange(WireModel):
    display_name: Name | None = None
    metadata: MetadataChange | None = None


class BearerAuth(WireModel):
    type: Literal["static_bearer"]
    mcp_server_url: HttpAddress
    token: SecretStr = Field(min_length=1)


class EnvironmentVariableAuth(WireModel):
    type: Literal["environment_variable"]
    secret_name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,255}$")
    secret_value: SecretStr = Field(min_length=1)
    networking: Networking | None = None
    injection_location: dict[str, bool | None] | None = None


class TokenEndpointAuth(WireModel):
    type: Name
    client_secret: SecretStr | None = None


class OAuthRefresh(WireModel):
    client_id: Name
    token_endpoint: HttpAddress
    token_endpoint_auth: TokenEndpointAuth
    refresh_token: SecretStr
    resource: str | None = None
    scope: str | None = None


class McpOAuth(WireModel):
    type: Literal["mcp_oauth"]
    mcp_server_url: HttpAddress
    access_token: SecretStr = Field(min_length=1)
    expires_at: str | None = None
    refresh: OAuthRefresh | None = None

    @field_validator("expires_at")
    @classmethod
    def _a_time(cls, text: str | None) -> str | None:
        try:
            datetime.fromisoformat(text or "2031-01-31")
        except ValueError:
            raise ValueError(f"must be a time, as 2031-01-31T12:30:00Z, not '{(text or '')[:40]}'") from None
        return text


CredentialAuth = Annotated[BearerAuth | EnvironmentVariableAuth | McpOAuth, Field(discriminator="type")]


class NewCredential(WireModel):
    display_name: str | None = Field(None, max_length=256)
    auth: CredentialAuth
    metadata: Metadata | None = None


class CredentialChange(WireModel):
    """The type and the server of a credential cannot change; its secrets can, one by one."""

    display_name: str | None = Field(None, max_length=256)
    auth: JsonObject | None = Field(None, repr=False)
    metadata: MetadataChange | None = None
