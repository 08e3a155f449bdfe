"""A server with a certificate speaks https and nothing else, and shows a new certificate after SIGHUP."""

import http.client
import signal
import ssl
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from gateway.config import load_config
from gateway.yaml_positions import Problems
from tests.support.server_process import Running, running

AUTHORITY = trustme.CA()
SETTINGS = """\
dialects: {aap: }
agents: {demo: {backend: demo}}
tls: {certificate: server.crt, key: server.key}
"""


def issue(folder: Path) -> int:
    """Write a new certificate and its key; the number of the certificate."""
    made = AUTHORITY.issue_cert("127.0.0.1")
    made.private_key_pem.write_to_path(str(folder / "server.key"))
    (folder / "server.crt").write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    return x509.load_pem_x509_certificate(made.cert_chain_pems[0].bytes()).serial_number


def connected(server: Running) -> http.client.HTTPSConnection:
    trusting = ssl.create_default_context()
    AUTHORITY.configure_trust(trusting)
    host, _, port = server.address.removeprefix("https://").partition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=trusting, timeout=60)
    connection.connect()
    return connection


def shown(connection: http.client.HTTPSConnection) -> int:
    seen = connection.sock.getpeercert(binary_form=True)
    assert seen is not None
    return x509.load_der_x509_certificate(seen).serial_number


def status(connection: http.client.HTTPConnection, path: str = "/healthz") -> int:
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_a_certificate_is_shown_and_exchanged_on_hangup(tmp_path: Path) -> None:
    first = issue(tmp_path)
    files = {"certificate": "server.crt", "key": "server.key"}
    with running(tmp_path, tls=files, dialects={"aap": {"cors": True}}) as server:
        assert server.address.startswith("https://")
        old = connected(server)
        assert (shown(old), status(old)) == (first, 200)
        plain = http.client.HTTPConnection(old.host, old.port, timeout=60)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            status(plain)

        second = issue(tmp_path)
        server.process.send_signal(signal.SIGHUP)
        server.until_told('"reloaded"')
        assert shown(connected(server)) == second
        assert status(old) == 200, "who is connected stays so"

        issue(tmp_path)
        (tmp_path / "server.key").write_text("no key")
        server.process.send_signal(signal.SIGHUP)
        assert "cannot be used" in server.until_told("reload_failed")
        new = connected(server)
        assert (shown(new), status(new)) == (second, 200), "what was in force stays so"
        assert server.end() == 0
        told = server.errors.read_text()
        assert "Traceback" not in told
        assert told.count("setting_deprecated") == told.count("setting_unsafe") == 2, "at start and after the reload"


def test_files_that_cannot_be_used_are_told_with_their_line(tmp_path: Path) -> None:
    issue(tmp_path)
    file, key = tmp_path / "config.yaml", tmp_path / "server.key"
    file.write_text(SETTINGS)
    good = key.read_bytes()
    sealed = serialization.load_pem_private_key(good, None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"words"))
    other = AUTHORITY.issue_cert("127.0.0.1").private_key_pem.bytes()
    config = load_config(file)
    assert config.tls is not None
    assert config.source_files == (file, tmp_path / "server.crt", key), "what --watch looks at"
    for content, words in ((other, "the key does not belong to the certificate"), (sealed, "store it without one"),
                           (b"", "they must be PEM files")):
        key.write_bytes(content)
        with pytest.raises(Problems) as found:
            load_config(file)
        assert str(found.value).startswith(f"{file}:3:1: ")
        assert words in str(found.value)
    key.unlink()
    with pytest.raises(Problems, match="cannot be read: No such file"):
        load_config(file)
