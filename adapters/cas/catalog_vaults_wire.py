"""What CAS clients send about vaults and their credentials; what is secret does not show itself."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator

from .catalog_wire import Address, Metadata, MetadataChange, Name, Networking, Wire


class NewVault(Wire):
    display_name: Name
    metadata: Metadata | None = None


class VaultChange(Wire):
    display_name: Name | None = None
    metadata: MetadataChange | None = None


class BearerAuth(Wire):
    type: Literal["static_bearer"]
    mcp_server_url: Address
    token: SecretStr = Field(min_length=1)


class VariableAuth(Wire):
    type: Literal["environment_variable"]
    secret_name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,255}$")
    secret_value: SecretStr = Field(min_length=1)
    networking: Networking | None = None
    injection_location: dict[str, bool | None] | None = None


class EndpointAuth(Wire):
    type: Name
    client_secret: SecretStr | None = None


class Refresh(Wire):
    client_id: Name
    token_endpoint: Address
    token_endpoint_auth: EndpointAuth
    refresh_token: SecretStr
    resource: str | None = None
    scope: str | None = None


class OAuth(Wire):
    type: Literal["mcp_oauth"]
    mcp_server_url: Address
    access_token: SecretStr = Field(min_length=1)
    expires_at: str | None = None
    refresh: Refresh | None = None

    @field_validator("expires_at")
    @classmethod
    def _a_time(cls, said: str | None) -> str | None:
        try:
            datetime.fromisoformat(said or "2031-01-31")
        except ValueError:
            raise ValueError(f"must be a time, as 2031-01-31T12:30:00Z, not '{(said or '')[:40]}'") from None
        return said


Auth = Annotated[BearerAuth | VariableAuth | OAuth, Field(discriminator="type")]


class NewCredential(Wire):
    display_name: str | None = Field(None, max_length=256)
    auth: Auth
    metadata: Metadata | None = None


class CredentialChange(Wire):
    """The kind of a credential and the server it is for stay; its secrets may be set anew, one by one."""

    display_name: str | None = Field(None, max_length=256)
    auth: dict[str, Any] | None = Field(None, repr=False)
    metadata: MetadataChange | None = None
