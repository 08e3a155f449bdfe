"""One request of HTTP/1.1 as it is sent; what could be taken for more than one line, or for another request, is not."""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import orjson
from yarl import URL

from gateway.errors import BackendFailed

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNFIT = re.compile("[\0-\x08\n-\x1f\x7f\ud800-\udfff]")


def usual(url: URL) -> dict[str, str]:
    """The headers of every request to a server. Nothing compressed is asked for: each piece is wanted at once."""
    raw_host = url.raw_host or ""
    host = f"[{raw_host}]" if ":" in raw_host else raw_host
    headers = {
        "host": host if url.is_default_port() else f"{host}:{url.port}",
        "accept": "*/*", "accept-encoding": "identity", "user-agent": "dragoman",
    }
    if url.user is not None:
        who = f"{url.user}:{url.password or ''}".encode()
        headers["authorization"] = f"Basic {b64encode(who).decode()}"
    return headers


def fit(headers: Mapping[str, str]) -> dict[str, str]:
    """The same, their names in lower case; refused where one is more than a line."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or _UNFIT.search(value):
            raise BackendFailed(f"the header {name.strip()!r} has a line break in it, or worse")
    return {name.lower(): value for name, value in headers.items()}


def written(method: str, url: URL, body: Any, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request whose headers are fit."""
    target = url.raw_path_qs
    if not target.isascii() or not target.isprintable() or " " in target:
        raise BackendFailed("the path of a request has a line break in it, or worse")
    payload, more = b"", dict[str, str]()
    if body is not None:
        payload = orjson.dumps(body)
        more = {"content-type": "application/json", "content-length": str(len(payload))}
    elif method != "GET":
        more = {"content-length": "0"}
    head = "".join([f"{name}: {value}\r\n" for name, value in {**headers, **more}.items()])
    return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + payload
