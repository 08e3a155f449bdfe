"""The settings of `oidc`: whose tokens are accepted."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat

NonEmptyText = Annotated[str, Field(min_length=1)]


class OidcSettings(BaseModel, extra="forbid", frozen=True):
    """Who signs the tokens of `auth: oidc`, and what a token must contain."""

    issuer: NonEmptyText
    audience: NonEmptyText
    user_claim: NonEmptyText = "sub"
    jwks_url: str = ""
    algorithms: tuple[Literal[
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"
    ], ...] = ("RS256", "ES256")
    leeway_seconds: NonNegativeFloat = 60
    refresh_seconds: PositiveFloat = 60
    cache_seconds: PositiveFloat = 3600
