"""Who asks: the user, what they showed to come in, and whether they may change the server for everybody."""

from typing import Literal

from msgspec import Struct

NOBODY = ""
"""The user where nobody has to say who they are; the owner of everything there."""
Role = Literal["user", "admin"]


class Caller(Struct, frozen=True, kw_only=True):
    """One who was let in. Sessions and resources belong to the `user`, whatever they showed."""

    user: str = NOBODY
    credential: str = ""
    """What they showed, as it can be known again: the hash of a key or of a token; "" where nothing is asked for."""
    key: str = ""
    """What the credential is called: the name of a key, or the issuer of a token."""
    address: str = ""
    role: Role = "user"
    expires: float | None = None
    """When the credential ceases to be good, in seconds since 1970."""

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"
