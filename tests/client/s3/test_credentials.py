"""Credentials are found where other programs find theirs: variables, the shared file, the container."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.client.s3 import Credentials, CredentialSource
from gateway.client.s3.credentials import FILE_SECONDS
from gateway.errors import BackendFailed, Invalid

FILE = "[default]\naws_access_key_id = {key}\naws_secret_access_key = s%e;c\n[other]\naws_access_key_id=o\n" \
       "aws_secret_access_key=p\naws_session_token=t\n"


class Now:
    at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(FILE.format(key="k"))
    return tmp_path


async def test_variables_come_before_the_file(home: Path) -> None:
    environ = {"HOME": str(home), "AWS_ACCESS_KEY_ID": "v", "AWS_SECRET_ACCESS_KEY": "w", "AWS_SESSION_TOKEN": "x"}
    found = await CredentialSource(environ, Now()).find()
    assert found == Credentials(key_id="v", secret="w", token="x")


async def test_a_profile_of_the_file_is_chosen(home: Path) -> None:
    found = await CredentialSource({"HOME": str(home)}, Now()).find()
    assert found == Credentials(key_id="k", secret="s%e;c")
    found = await CredentialSource({"HOME": str(home), "AWS_PROFILE": "other"}, Now()).find()
    assert found == Credentials(key_id="o", secret="p", token="t")
    elsewhere = {"HOME": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws" / "credentials")}
    assert (await CredentialSource(elsewhere, Now()).find()).key_id == "k"


async def test_a_rotated_key_is_taken_up_without_a_restart(home: Path) -> None:
    now = Now()
    source = CredentialSource({"HOME": str(home)}, now)
    assert (await source.find()).key_id == "k"
    (home / ".aws" / "credentials").write_text(FILE.format(key="new"))
    assert (await source.find()).key_id == "k"
    now.at += FILE_SECONDS
    assert (await source.find()).key_id == "new"


@pytest.mark.parametrize("environ", [{"HOME": "/nowhere"}, {"AWS_PROFILE": "none"}])
async def test_none_is_an_error_that_says_where_they_are_looked_for(home: Path, environ: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="AWS_ACCESS_KEY_ID"):
        await CredentialSource({"HOME": str(home), **environ}, Now()).find()


async def test_a_file_that_is_none_is_an_error_without_its_contents(home: Path) -> None:
    (home / ".aws" / "credentials").write_text("hush = hush")
    with pytest.raises(Invalid, match="cannot be read") as caught:
        await CredentialSource({"HOME": str(home)}, Now()).find()
    assert "hush" not in caught.value.message


async def test_a_container_gives_credentials_and_gives_new_ones_before_they_expire(tmp_path: Path) -> None:
    given, now = list[str](), Now()
    (tmp_path / "token").write_text("let-me-in\n")

    async def answer(request: web.Request) -> web.Response:
        given.append(request.headers["Authorization"])
        return web.json_response({"AccessKeyId": f"k{len(given)}", "SecretAccessKey": "s", "Token": "t",
                                  "Expiration": "1970-01-12T14:46:40Z"})

    app = web.Application()
    app.add_routes([web.get("/creds", answer)])
    async with TestServer(app) as server:
        source = CredentialSource({
            "HOME": str(tmp_path), "AWS_CONTAINER_CREDENTIALS_FULL_URI": str(server.make_url("/creds")),
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
        }, now)
        assert [(await source.find()).key_id for _ in range(2)] == ["k1", "k1"]
        now.at += 3_400
        assert (await source.find()) == Credentials(key_id="k2", secret="s", token="t")
        with pytest.raises(BackendFailed, match="the container gives no credentials"):
            await CredentialSource({
                "HOME": str(tmp_path), "AWS_CONTAINER_CREDENTIALS_FULL_URI": str(server.make_url("/elsewhere")),
            }, now).find()
    assert given == ["let-me-in"] * 2
