"""A small issuer of OpenID Connect in the loop of a test: discovery, keys that can be changed, and tokens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import Key, OctKey, RSAKey

AUDIENCE = "dragoman"


@cache
def rsa(kid: str) -> RSAKey:
    """Keys take a while to make, so that each is made once in a process."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


class Issuer:
    """Counts how often its keys are fetched; `is_away`, it answers with an error."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = [rsa("one")]
        self.fetches = 0
        self.is_away = False
        self.about: dict[str, Any] = {}
        """What its discovery says otherwise than it should."""

    def token(self, now: float, key: Key | None = None, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A good token, except for what is said here; a claim that is None is left out."""
        signer = key or self.keys[0]
        said = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "exp": int(now) + 600, "iat": int(now), **claims}
        head = {"alg": "HS256" if isinstance(signer, OctKey) else "RS256", "kid": signer.kid, **(header or {})}
        return jwt.encode(
            {name: value for name, value in head.items() if value is not None},
            {name: value for name, value in said.items() if value is not None}, signer,
            algorithms=["RS256", "RS384", "HS256", "none"],
        )

    async def _discovery(self, request: web.Request) -> web.Response:
        return web.json_response({"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.about})

    async def _keys(self, request: web.Request) -> web.Response:
        self.fetches += 1
        if self.is_away:
            raise web.HTTPServiceUnavailable
        return web.json_response({"keys": [key.as_dict(private=False) for key in self.keys]})


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    issuer, app = Issuer(), web.Application()
    app.add_routes([
        web.get("/realm/.well-known/openid-configuration", issuer._discovery), web.get("/realm/keys", issuer._keys),
    ])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}/realm"
    try:
        yield issuer
    finally:
        await runner.cleanup()
