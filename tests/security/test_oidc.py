"""Tokens of an issuer open the server for the user that they name; whatever else looks like a token does not."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio
from joserfc.jwk import OctKey

from gateway.config import OidcSettings
from gateway.errors import Overloaded, Unauthenticated
from gateway.oidc import OidcVerifier
from gateway.resources import KeyStore
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving, simulation
from tests.support.oidc_issuer import AUDIENCE, Issuer, issuing, rsa


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as made:
        yield made


def tokens(issuer: Issuer, **settings: Any) -> OidcVerifier:
    return OidcVerifier(
        OidcSettings(issuer=issuer.url, audience=AUDIENCE, **settings), simulation().wall_clock)


def now() -> float:
    return simulation().wall_clock()


@asynccontextmanager
async def opened(folder: Path, issuer: Issuer, **settings: Any) -> AsyncIterator[Served]:
    oidc = {"issuer": issuer.url, "audience": AUDIENCE}
    async with serving(folder, oidc=oidc, log="memory", dialects=ALL_DIALECTS,
                       **{"auth": "oidc", **settings}) as served:
        yield served


async def status(served: Served, token: str, path: str = "/aap/sessions") -> int:
    async with served.http.get(served.url(path), headers={"Authorization": f"Bearer {token}"}) as answer:
        return answer.status


# -- good and bad tokens ----------------------------------------------------------------------------------------------

async def test_a_good_token_names_its_user(issuer: Issuer) -> None:
    door = tokens(issuer)
    caller = await door.verify(issuer.token(now()))
    assert (caller.user, caller.key, caller.expires) == ("ada", issuer.url, int(now()) + 600 + 60)
    assert (await door.verify(issuer.token(now(), aud=["others", AUDIENCE]))).user == "ada"
    assert (await door.verify(issuer.token(now(), header={"kid": None}))).user == "ada", "the issuer has one key"
    assert (await tokens(issuer, user_claim="email").verify(issuer.token(now(), email="ada@example.com"))).user == (
        "ada@example.com")
    await door.close()


def unsigned(issuer: Issuer) -> str:
    """The claims of a good token under `alg: none`, without a signature."""
    _, claims, _ = issuer.token(now()).split(".")
    head = encoded({"alg": "none", "kid": "one"})
    return f"{head}.{claims}."


def changed(issuer: Issuer) -> str:
    """A good token whose user was exchanged."""
    head, _, signature = issuer.token(now()).split(".")
    return f"{head}.{issuer.token(now(), sub='root').split('.')[1]}.{signature}"


def shared(issuer: Issuer) -> str:
    """Signed with what everybody can read, for a verifier that asks the token how it was signed."""
    _, claims, _ = issuer.token(now()).split(".")
    said = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{claims}"
    signature = hmac.digest(issuer.keys[0].as_pem(private=False), said.encode(), "sha256")
    return f"{said}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def with_header(issuer: Issuer, header: Any) -> str:
    return ".".join([encoded(header), *issuer.token(now()).split(".")[1:]])


def encoded(said: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


BAD: dict[str, tuple[Callable[[Issuer], str], str]] = {
    "no algorithm": (unsigned, "must be signed with RS256 or ES256"),
    "another algorithm": (lambda issuer: issuer.token(now(), header={"alg": "RS384"}), "must be signed with"),
    "the public key as a shared secret": (
        lambda issuer: shared(issuer), "must be signed with"),
    "another issuer": (lambda issuer: issuer.token(now(), iss="https://evil.example"), "iss"),
    "no issuer": (lambda issuer: issuer.token(now(), iss=None), "iss"),
    "another audience": (lambda issuer: issuer.token(now(), aud="another"), "aud"),
    "no audience": (lambda issuer: issuer.token(now(), aud=None), "aud"),
    "expired": (lambda issuer: issuer.token(now(), exp=int(now()) - 61), "has expired"),
    "never expires": (lambda issuer: issuer.token(now(), exp=None), "exp"),
    "not a number": (lambda issuer: issuer.token(now(), exp="tomorrow"), "exp"),
    "not yet": (lambda issuer: issuer.token(now(), nbf=int(now()) + 120), "not yet valid"),
    "an unknown key": (lambda issuer: issuer.token(now(), rsa("other")), "does not publish"),
    "a key of the same name": (
        lambda issuer: issuer.token(now(), rsa("other"), header={"kid": "one"}), "signature"),
    "changed": (changed, "signature"),
    "no user": (lambda issuer: issuer.token(now(), sub=None), "names no user"),
    "nobody": (lambda issuer: issuer.token(now(), sub=""), "names no user"),
    "a list of users": (lambda issuer: issuer.token(now(), sub=["root"]), "sub"),
    "a name with a line break": (lambda issuer: issuer.token(now(), sub="a\nb"), "names no user"),
    "no token": (lambda issuer: "a.b.c", "not a signed token"),
    "too long": (lambda issuer: issuer.token(now(), more="x" * 20_000), "16384 characters"),
    "a list as the name of a key": (
        lambda issuer: with_header(issuer, {"alg": "RS256", "kid": ["one"]}), "'kid' must be a text"),
    "a list as the algorithm": (
        lambda issuer: with_header(issuer, {"alg": ["RS256"], "kid": "one"}), "signed"),
    "a header that is none": (lambda issuer: with_header(issuer, ["RS256"]), "signed"),
    "a demand that is not understood": (
        lambda issuer: with_header(issuer, {"alg": "RS256", "kid": "one", "crit": ["x"], "x": 1}), "token is invalid"),
    "half a character": (lambda issuer: "a.\udcff.c", "not a signed token"),
}


@pytest.mark.parametrize("what", BAD)
async def test_a_token_that_is_not_good_is_refused(issuer: Issuer, what: str) -> None:
    make, reason = BAD[what]
    with pytest.raises(Unauthenticated, match=reason):
        await tokens(issuer).verify(make(issuer))


async def test_clocks_may_differ_a_little(issuer: Issuer) -> None:
    door = tokens(issuer)
    for claims in ({"exp": int(now()) - 50}, {"nbf": int(now()) + 50}, {"iat": int(now()) + 50}):
        assert (await door.verify(issuer.token(now(), **claims))).user == "ada"
    with pytest.raises(Unauthenticated):
        await tokens(issuer, leeway_seconds=0).verify(issuer.token(now(), exp=int(now()) - 1))


async def test_an_address_that_the_issuer_has_not_verified_names_nobody(issuer: Issuer) -> None:
    with pytest.raises(Unauthenticated, match="has not verified"):
        await tokens(issuer, user_claim="email").verify(issuer.token(now(), email="a@b.example", email_verified=False))


# -- the issuer's keys ------------------------------------------------------------------------------------------------

async def test_strangers_make_the_server_fetch_keys_seldom(issuer: Issuer) -> None:
    door = tokens(issuer, refresh_seconds=60)
    good = issuer.token(now())
    await asyncio.gather(*(door.verify(good) for _ in range(20)))
    assert issuer.fetches == 1
    for number in range(50):
        with pytest.raises(Unauthenticated):
            await door.verify(issuer.token(now(), rsa("other"), header={"kid": f"made up {number}"}))
    assert issuer.fetches == 1
    await asyncio.sleep(60)
    issuer.keys = [rsa("two")]
    assert (await door.verify(issuer.token(now(), rsa("two")))).user == "ada"
    assert issuer.fetches == 2
    with pytest.raises(Unauthenticated, match="does not publish"):
        await door.verify(good)


async def test_old_keys_are_fetched_again_while_nobody_waits(issuer: Issuer) -> None:
    door = tokens(issuer, cache_seconds=100)
    token = issuer.token(now(), exp=int(now()) + 9000)
    await door.verify(token)
    await asyncio.sleep(101)
    issuer.keys = [rsa("two")]
    assert (await door.verify(token)).user == "ada"
    await asyncio.sleep(1)
    assert issuer.fetches == 2
    with pytest.raises(Unauthenticated, match="does not publish"):
        await door.verify(token)


async def test_while_the_issuer_is_away_its_keys_stay_in_force(issuer: Issuer) -> None:
    door = tokens(issuer, cache_seconds=100)
    issuer.is_away = True
    for _ in range(10):
        with pytest.raises(Overloaded, match="cannot be fetched"):
            await door.verify(issuer.token(now()))
    assert issuer.fetches == 1
    await asyncio.sleep(5)
    issuer.is_away = False
    await door.verify(issuer.token(now()))
    issuer.is_away = True
    await asyncio.sleep(101)
    assert (await door.verify(issuer.token(now()))).user == "ada"


@pytest.mark.parametrize("about", [{"issuer": "https://evil.example"}, {"jwks_uri": "file:///etc/passwd"}])
async def test_a_discovery_of_somebody_else_is_not_believed(issuer: Issuer, about: dict[str, str]) -> None:
    issuer.about = about
    with pytest.raises(Overloaded, match="the discovery of"):
        await tokens(issuer).verify(issuer.token(now()))


async def test_keys_that_are_no_public_keys_for_signatures_are_not_used(issuer: Issuer) -> None:
    secret = OctKey.generate_key(256, {"kid": "one"})
    issuer.keys = [secret]  # type: ignore[list-item]
    with pytest.raises(Overloaded, match="no key for signatures"):
        await tokens(issuer).verify(issuer.token(now(), rsa("one")))


# -- the server -------------------------------------------------------------------------------------------------------

async def test_a_server_is_opened_by_tokens_and_by_keys_as_the_settings_say(issuer: Issuer, tmp_path: Path) -> None:
    key, token = KeyStore(tmp_path / "data").add("ada"), issuer.token(now())
    async with opened(tmp_path, issuer) as served:
        assert [await status(served, word) for word in (token, key, "", changed(issuer))] == [200, 401, 401, 401]
    async with opened(tmp_path, issuer, auth=["keys", "oidc"], admins=["root"]) as served:
        assert [await status(served, word) for word in (token, key)] == [200, 200]
        root = issuer.token(now(), sub="root")
        assert [await status(served, word, "/metrics") for word in (token, key, root)] == [403, 403, 200]
        made = await served.gateway.sessions.create("ada", "demo")
        assert await status(served, token, f"/aap/sessions/{made.session_id}") == 200
        assert await status(served, key, f"/aap/sessions/{made.session_id}") == 200, "one user, whatever they show"
        assert await status(served, root, f"/aap/sessions/{made.session_id}") == 404, "admins are users like others"


async def test_what_a_token_has_open_ends_when_it_expires(issuer: Issuer, tmp_path: Path) -> None:
    async with opened(tmp_path, issuer) as served:
        token = issuer.token(now(), exp=int(now()) + 100)
        ws = await served.http.ws_connect(
            served.url("/api/v1/ws/chat"), headers={"Authorization": f"Bearer {token}"})
        sio, gone = socketio.AsyncClient(reconnection=False), asyncio.Event()
        sio.on("disconnect", lambda reason: gone.set())
        await sio.connect(served.address, auth={"token": token}, wait_timeout=60)
        await asyncio.sleep(100)
        assert not gone.is_set()
        async with asyncio.timeout(100):
            async for _ in ws:
                pass
            await gone.wait()
        assert ws.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION
        await sio.shutdown()
