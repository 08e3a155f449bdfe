"""moto's S3 server, in a thread, behind a door that checks what moto does not: signatures, and the hashes of bodies.

Signatures are checked with botocore's implementation, which shares no line with the gateway's. A test may make the
server misbehave, and ask what it was asked.
"""

import base64
import hashlib
import io
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from gateway.client.s3 import Credentials

KEY = Credentials(key_id="AKIATESTS", secret="s3-secret-for-tests")  # for this server alone
BUCKET = "agents"
Environ = dict[str, Any]
StartResponse = Callable[..., Any]


@dataclass
class S3Server:
    """One server: its address, what it was asked, and how it misbehaves."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The method and the path, with its query, of each request."""
    refuse: Callable[[str, str], str | None] = lambda method, path: None
    """(method, path) → the status of a refusal, as in `503 Slow Down`."""
    lie: Callable[[str, str], bool] = lambda method, path: False
    """(method, path) → whether a PUT is confirmed, and not done."""
    key: Credentials = KEY

    @property
    def environ(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": KEY.key_id, "AWS_SECRET_ACCESS_KEY": KEY.secret, "AWS_ENDPOINT_URL_S3": self.url}

    def objects(self) -> dict[str, bytes]:
        """What the bucket has."""
        found = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]
        return {str(name): bytes(one.value) for name, one in sorted(found.keys.items())}

    def uploads(self) -> int:
        """How many uploads in parts were begun and neither completed nor aborted."""
        return len(s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].multiparts)


class _Silent(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *given: Any) -> None:
        """Tests read failures, not requests."""


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server with one empty bucket."""
    s3_backends.reset()
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(BUCKET, "us-east-1")
    described = S3Server()
    inner = DomainDispatcherApplication(create_backend_app)

    def door(environ: Environ, start: StartResponse) -> Iterable[bytes]:
        method, target = environ["REQUEST_METHOD"], environ["REQUEST_URI"]
        described.asked.append((method, target))
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if refusal := described.refuse(method, target) or _fault(described, environ, target, body):
            words = f"<Error><Code>{refusal.partition(' ')[2]}</Code><Message>so it is</Message></Error>".encode()
            start(refusal, [("Content-Type", "application/xml"), ("Content-Length", str(len(words)))])
            return [words]
        if method == "PUT" and described.lie(method, target):
            start("200 OK", [("ETag", f'"{hashlib.md5(body).hexdigest()}"'), ("Content-Length", "0")])
            return [b""]
        return inner(environ, start)

    server = make_server("127.0.0.1", 0, door, threaded=True, request_handler=_Silent)
    described.url = f"http://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield described
    finally:
        server.shutdown()
        thread.join(300)
        server.server_close()


def _fault(server: S3Server, environ: Environ, target: str, body: bytes) -> str | None:
    """What a real store refuses: a wrong signature, and a body that is not as its headers say."""
    given = environ.get("HTTP_CONTENT_MD5", "")
    if body and base64.b64decode(given) != hashlib.md5(body).digest():
        return "400 BadDigest"
    digest = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")
    if "HTTP_AUTHORIZATION" in environ and digest != hashlib.sha256(body).hexdigest():
        return "400 XAmzContentSHA256Mismatch"
    is_right = _signed_query(server, environ, target) if "X-Amz-Signature=" in target else _signed_headers(
        server, environ, target)
    return None if is_right else "403 SignatureDoesNotMatch"


def _signed_headers(server: S3Server, environ: Environ, target: str) -> bool:
    given = environ.get("HTTP_AUTHORIZATION", "")
    if "SignedHeaders=" not in given:
        return False
    names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: environ.get(f"HTTP_{name.upper().replace('-', '_')}", "") for name in names}
    request = AWSRequest(environ["REQUEST_METHOD"], f"{server.url}{target}", headers=headers)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = S3SigV4Auth(_boto(server.key), "s3", _region(given))
    canonical = auth.canonical_request(request)
    signature = auth.signature(auth.string_to_sign(request, canonical), request)
    return bool(given.endswith(f"Signature={signature}")) and f"Credential={server.key.key_id}/" in given


def _signed_query(server: S3Server, environ: Environ, target: str) -> bool:
    path, _, query = target.partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    signature = given.pop("X-Amz-Signature")
    text = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(given.items()))
    request = AWSRequest(environ["REQUEST_METHOD"], f"{server.url}{path}?{text}", headers={})
    request.context["timestamp"] = given["X-Amz-Date"]
    auth = S3SigV4QueryAuth(_boto(server.key), "s3", given["X-Amz-Credential"].split("/")[2])
    canonical = auth.canonical_request(request)
    return bool(auth.signature(auth.string_to_sign(request, canonical), request) == signature)


def _boto(key: Credentials) -> Any:
    return BotoCredentials(key.key_id, key.secret, key.token or None)


def _region(authorization: str) -> str:
    return authorization.partition("Credential=")[2].split("/")[2]
