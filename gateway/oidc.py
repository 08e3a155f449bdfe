"""Verifies tokens of an OpenID Connect issuer, and caches the keys of the issuer."""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import structlog
from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from gateway.client import HttpClient
from gateway.config import OidcSettings
from gateway.errors import BackendFailed, GatewayError, Overloaded, Unauthenticated
from gateway.ports import Caller, Clock, Timeouts

DISCOVERY = "/.well-known/openid-configuration"
MAX_TOKEN_LENGTH = 16 * 1024
"""The largest number of characters of a token."""
MAX_USER_LENGTH = 256
MAX_CACHED_TOKENS = 4096
"""The number of verified tokens that are cached, so that their signatures are not verified with every request."""
RETRY_WITHOUT_KEYS_SECONDS = 5.0
"""Seconds between two attempts to fetch the keys while there are none."""
FETCH_TIMEOUTS = Timeouts(connect=5.0, first_byte=10.0, idle=10.0, total=20.0, attempts=1)

log = structlog.get_logger("dragoman.oidc")


class OidcVerifier:
    """Verifies tokens of one issuer for one audience."""

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._keys: dict[str | None, Key] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._why = ""
        self._fetching: asyncio.Task[None] | None = None
        self._known: dict[bytes, Caller] = {}

    async def verify(self, token: str) -> Caller:
        """Return the user of the token; raises `Unauthenticated`, or `Overloaded` while the keys are missing."""
        digest = sha256(token.encode(errors="replace")).digest()
        if (known := self._known.get(digest)) is not None and (known.expires or 0) > self._clock():
            self._keep_fresh()
            return known
        claims = await self._claims(token)
        caller = Caller(
            user=self._user(claims), credential=f"oidc:{digest.hex()}", key=self._settings.issuer,
            expires=claims["exp"] + self._settings.leeway_seconds,
        )
        self._known[digest] = caller
        if len(self._known) > MAX_CACHED_TOKENS:
            del self._known[next(iter(self._known))]
        return caller

    async def close(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    # -- the token ------------------------------------------------------------------------------------------------

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > MAX_TOKEN_LENGTH:
            raise Unauthenticated(f"a token may have {MAX_TOKEN_LENGTH} characters")
        algorithms = self._settings.algorithms
        try:
            header = jws.extract_compact(token.encode()).headers()
        except (JoseError, ValueError):
            raise Unauthenticated("this is not a signed token (a JWT)") from None
        if header.get("alg") not in algorithms:
            raise Unauthenticated(f"the token must be signed with {' or '.join(algorithms)}")
        key = await self._key(header.get("kid"))
        try:
            claims = jwt.decode(token, key, algorithms=algorithms).claims
            self._rules().validate(claims)
        except ExpiredTokenError:
            raise Unauthenticated("the token has expired; ask the issuer for another one") from None
        except (JoseError, ValueError, TypeError) as error:
            raise Unauthenticated(f"the token is invalid: {_reason(error)}") from None
        if not isinstance(claims["exp"], int | float):
            raise Unauthenticated("the token is invalid: 'exp' is not a number")
        return claims

    def _rules(self) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            now=lambda: int(self._clock()), leeway=int(self._settings.leeway_seconds),
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.audience}, exp={"essential": True},
        )

    def _user(self, claims: Mapping[str, object]) -> str:
        name = self._settings.user_claim
        user = claims.get(name)
        if not isinstance(user, str) or not 0 < len(user) <= MAX_USER_LENGTH or not user.isprintable():
            raise Unauthenticated(f"the token names no user: the claim '{name}' must be a text")
        if name == "email" and claims.get("email_verified") is False:
            raise Unauthenticated("the token names no user: the issuer has not verified the email address")
        return user

    # -- the keys of the issuer -----------------------------------------------------------------------------------

    async def _key(self, kid: object) -> Key:
        """Return the key with this id; a token without a key id needs an issuer with one key."""
        if not isinstance(kid, str | None):
            raise Unauthenticated("this is not a signed token (a JWT): 'kid' must be a text")
        self._keep_fresh()
        if self._find(kid) is None and self._may_fetch:
            await self._fetch()
        if not self._keys:
            raise Overloaded(f"the keys of {self._settings.issuer} cannot be fetched: {self._why}")
        if (found := self._find(kid)) is None:
            raise Unauthenticated("the token is signed with a key that the issuer does not publish")
        return found

    def _find(self, kid: str | None) -> Key | None:
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    @property
    def _may_fetch(self) -> bool:
        """Say whether the keys may be fetched; unknown key ids must not make the server fetch more often than set."""
        if self._fetching is not None:
            return True
        pause = self._settings.refresh_seconds if self._keys else min(
            RETRY_WITHOUT_KEYS_SECONDS, self._settings.refresh_seconds)
        return asyncio.get_running_loop().time() - self._tried_at >= pause

    def _keep_fresh(self) -> None:
        """Fetch old keys again in the background: a key that the issuer has withdrawn is then forgotten."""
        age = asyncio.get_running_loop().time() - self._fetched_at
        if self._keys and age > self._settings.cache_seconds and self._fetching is None and self._may_fetch:
            self._begin()

    async def _fetch(self) -> None:
        await asyncio.shield(self._fetching or self._begin())

    def _begin(self) -> asyncio.Task[None]:
        self._tried_at = asyncio.get_running_loop().time()
        self._fetching = asyncio.create_task(self._refresh(), name="fetch the issuer's keys")
        self._fetching.add_done_callback(self._fetched)
        return self._fetching

    def _fetched(self, task: asyncio.Task[None]) -> None:
        self._fetching = None

    async def _refresh(self) -> None:
        """Fetch the keys; if that fails, keep the old ones."""
        try:
            keys = signature_keys(await self._published())
        except GatewayError as error:
            self._why = error.message
            log.error("oidc_keys_not_fetched", issuer=self._settings.issuer, error=error.message)
            return
        self._fetched_at = asyncio.get_running_loop().time()
        if {kid: key.thumbprint() for kid, key in keys.items()} != {
            kid: key.thumbprint() for kid, key in self._keys.items()
        }:
            self._keys = keys
            self._known.clear()
            log.info("oidc_keys_fetched", issuer=self._settings.issuer, keys=len(keys))

    async def _published(self) -> object:
        url: Any = self._settings.jwks_url
        if not url:
            about = await _fetch_json(self._settings.issuer, DISCOVERY)
            if not isinstance(about, dict) or about.get("issuer") != self._settings.issuer:
                raise BackendFailed(f"the discovery of {self._settings.issuer} is that of another issuer")
            url = about.get("jwks_uri")
            if not isinstance(url, str) or not url.startswith(("https://", self._settings.issuer.partition(":")[0])):
                raise BackendFailed(f"the discovery of {self._settings.issuer} names no https:// address of its keys")
        return await _fetch_json(url, "")


async def _fetch_json(url: str, path: str) -> object:
    upstream = HttpClient(url, timeouts=FETCH_TIMEOUTS)
    try:
        return await upstream.json("GET", path)
    finally:
        await upstream.close()


def signature_keys(published: object) -> dict[str | None, Key]:
    """Return the public keys for signatures by id; raises `BackendFailed` if there is none."""
    listed = published.get("keys") if isinstance(published, dict) else None
    found: dict[str | None, Key] = {}
    for one in listed if isinstance(listed, Sequence) else ():
        if not isinstance(one, dict) or one.get("use", "sig") != "sig":
            continue
        try:
            key = JWKRegistry.import_key(one)
        except (JoseError, ValueError, TypeError, KeyError):
            continue  # an unknown type of key
        if isinstance(key, RSAKey | ECKey | OKPKey):  # a published symmetric key is not a secret
            found[one.get("kid")] = key
    if not found:
        raise BackendFailed("the issuer publishes no key for signatures")
    return found


def _reason(error: Exception) -> str:
    return str(getattr(error, "description", "") or error).rstrip(".").split("\n")[0]
