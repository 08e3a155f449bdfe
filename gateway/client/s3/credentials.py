"""The credentials of a store: from variables, from the shared file, or from the container that the server runs in."""

import asyncio
import configparser
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gateway.client.transport import HttpClient
from gateway.errors import BackendFailed, GatewayError, Invalid
from gateway.ports import Clock, Timeouts

CONTAINER = "http://169.254.170.2"
RENEW_SECONDS = 300.0
"""So long before they expire, credentials of a container are fetched again."""
FILE_SECONDS = 60.0
"""How long credentials of a file are used before the file is read again: a rotated key needs no restart."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """A key of the store."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


class CredentialSource:
    """Finds the credentials where other programs of this machine find theirs, and renews them."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._environ = environ
        self._clock = clock
        self._found: Credentials | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def find(self) -> Credentials:
        """The credentials; raises `Invalid` if there are none."""
        async with self._lock:
            if self._found is None or self._clock() >= self._until:
                self._found, self._until = await self._look()
            return self._found

    async def _look(self) -> tuple[Credentials, float]:
        given = self._environ
        if key_id := given.get("AWS_ACCESS_KEY_ID"):
            secret = given.get("AWS_SECRET_ACCESS_KEY", "")
            return Credentials(key_id=key_id, secret=secret, token=given.get("AWS_SESSION_TOKEN", "")), float("inf")
        if found := await asyncio.to_thread(self._from_file):
            return found, self._clock() + FILE_SECONDS
        if url := self._container_url():
            return await self._from_container(url)
        raise Invalid(
            "there are no credentials for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them "
            f"in {self._file()} under [{self._profile()}]")

    # -- the shared file ------------------------------------------------------------------------------------------

    def _file(self) -> Path:
        given = self._environ.get("AWS_SHARED_CREDENTIALS_FILE")
        return Path(given) if given else Path(self._environ.get("HOME", "/")) / ".aws" / "credentials"

    def _profile(self) -> str:
        return self._environ.get("AWS_PROFILE") or "default"

    def _from_file(self) -> Credentials | None:
        read = configparser.RawConfigParser()
        try:
            read.read_string(self._file().read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise Invalid(f"{self._file()} cannot be read: {type(error).__name__}") from None
        if not read.has_section(self._profile()):
            return None
        section = read[self._profile()]
        key_id, secret = section.get("aws_access_key_id", ""), section.get("aws_secret_access_key", "")
        return Credentials(key_id=key_id, secret=secret, token=section.get("aws_session_token", "")) if key_id else None

    # -- the container --------------------------------------------------------------------------------------------

    def _container_url(self) -> str:
        path = self._environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
        return f"{CONTAINER}{path}" if path else self._environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")

    async def _from_container(self, url: str) -> tuple[Credentials, float]:
        token = self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        if file := self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
            token = (await asyncio.to_thread(Path(file).read_text)).strip()
        client = HttpClient(url, headers={"Authorization": token} if token else {},
                            timeouts=Timeouts(connect=2, first_byte=5, total=10))
        try:
            match await client.json("GET", ""):
                case {"AccessKeyId": str() as key_id, "SecretAccessKey": str() as secret, **more}:
                    until = _read_time(more.get("Expiration")) - RENEW_SECONDS
                    return Credentials(key_id=key_id, secret=secret, token=str(more.get("Token") or "")), until
        except GatewayError as error:
            raise BackendFailed(f"the container gives no credentials for the bucket: {error.message}") from None
        finally:
            await client.close()
        raise BackendFailed("the container gives no credentials for the bucket: no AccessKeyId in its answer")


def _read_time(written: object) -> float:
    if not isinstance(written, str):
        return float("inf")
    return datetime.fromisoformat(written.replace("Z", "+00:00")).astimezone(UTC).timestamp()
