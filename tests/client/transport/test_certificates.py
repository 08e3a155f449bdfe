"""Certificates of TLS connections: the authorities that we trust, and our own for servers that ask for one."""

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization as keys

from gateway.client import HttpClient
from gateway.client.transport.certificates import upstream_context
from gateway.errors import BackendFailed
from gateway.ports.remote import Timeouts
from tests.support.client.byte_server import says, serving

ONCE = Timeouts(connect=30, first_byte=30, idle=30, total=60, attempts=1)


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    for variable in ("SSL_CLIENT_CERT_FILE", "SSL_CLIENT_KEY_FILE"):
        monkeypatch.delenv(variable, raising=False)
    return made


def demanding(authority: trustme.CA) -> ssl.SSLContext:
    """A server that speaks to nobody without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.mark.parametrize("files", [1, 2])
async def test_a_server_that_asks_who_we_are(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: int,
) -> None:
    mine = authority.issue_cert("gateway.test")
    certificate, key = tmp_path / "mine.pem", tmp_path / "key.pem"
    async with serving(says(b"1"), tls=demanding(authority)) as server:
        nobody = HttpClient(server.url, timeouts=ONCE)
        with pytest.raises(BackendFailed):
            await nobody.json("GET", "/")
        if files == 1:
            mine.private_key_and_cert_chain_pem.write_to_path(certificate)
        else:
            mine.cert_chain_pems[0].write_to_path(certificate)
            mine.private_key_pem.write_to_path(key)
            monkeypatch.setenv("SSL_CLIENT_KEY_FILE", str(key))
        monkeypatch.setenv("SSL_CLIENT_CERT_FILE", str(certificate))
        known = HttpClient(server.url, timeouts=ONCE)
        assert await known.json("GET", "/") == 1
        await known.close()
        await nobody.close()


def test_a_file_of_authorities_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with pytest.raises(BackendFailed, match=r"^SSL_CERT_FILE: there is no file /nowhere\.pem$"):
        upstream_context()


@pytest.mark.parametrize("wrong", ["missing", "no key", "not PEM", "password"])
def test_a_certificate_that_cannot_be_used(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str,
) -> None:
    mine, path = authority.issue_cert("gateway.test"), tmp_path / "mine.pem"
    if wrong == "no key":
        mine.cert_chain_pems[0].write_to_path(path)
    elif wrong == "not PEM":
        path.write_text("hello")
    elif wrong == "password":
        key = keys.load_pem_private_key(mine.private_key_pem.bytes(), None)
        sealed = key.private_bytes(
            keys.Encoding.PEM, keys.PrivateFormat.PKCS8, keys.BestAvailableEncryption(b"open sesame"))
        path.write_bytes(sealed + mine.cert_chain_pems[0].bytes())
    monkeypatch.setenv("SSL_CLIENT_CERT_FILE", str(path))
    with pytest.raises(BackendFailed, match="expected a certificate and its key, in PEM format and without a password"):
        upstream_context()
