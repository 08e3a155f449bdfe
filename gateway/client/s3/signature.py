"""Signatures of requests, version 4 of Amazon's scheme, which S3-compatible stores check. No clock, no socket."""

import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote

from yarl import URL

from .credentials import Credentials

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_DIGEST = sha256(b"").hexdigest()


def quoted(text: str, safe: str = "") -> str:
    """The text as it stands in a URL that is signed: everything is escaped but letters, digits and -._~"""
    return quote(text, safe=f"-._~{safe}")


def quoted_query(query: Mapping[str, str]) -> str:
    """The query in the order in which it is signed."""
    return "&".join(f"{quoted(name)}={quoted(value)}" for name, value in sorted(query.items()))


def signed_headers(
    method: str, url: URL, headers: Mapping[str, str], digest: str, who: Credentials, region: str, at: float,
) -> dict[str, str]:
    """The headers of a request and those that sign it; `digest` is the SHA-256 of the body."""
    stamp = _stamp(at)
    whole = {name.lower(): value.strip() for name, value in headers.items()}
    whole |= {"host": _host(url), "x-amz-content-sha256": digest, "x-amz-date": stamp}
    if who.token:
        whole["x-amz-security-token"] = who.token
    scope, names = f"{stamp[:8]}/{region}/s3/aws4_request", ";".join(sorted(whole))
    signature = _signature(method, url, url.raw_query_string, whole, digest, who, scope, stamp)
    authorization = f"{ALGORITHM} Credential={who.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**whole, "authorization": authorization}


def presigned_url(
    url: URL, query: Mapping[str, str], who: Credentials, region: str, at: float, seconds: int,
) -> URL:
    """A URL with which anybody may read the object for so many seconds."""
    stamp = _stamp(at)
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    whole = {
        **query, "X-Amz-Algorithm": ALGORITHM, "X-Amz-Credential": f"{who.key_id}/{scope}", "X-Amz-Date": stamp,
        "X-Amz-Expires": str(seconds), "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": who.token} if who.token else {}),
    }
    text = quoted_query(whole)
    signature = _signature("GET", url, text, {"host": _host(url)}, UNSIGNED, who, scope, stamp)
    return URL(f"{url.origin()}{url.raw_path}?{text}&X-Amz-Signature={signature}", encoded=True)


def _signature(
    method: str, url: URL, query: str, headers: Mapping[str, str], digest: str, who: Credentials, scope: str,
    stamp: str,
) -> str:
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = f"{method}\n{url.raw_path}\n{query}\n{lines}\n{';'.join(sorted(headers))}\n{digest}"
    text = f"{ALGORITHM}\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    key = f"AWS4{who.secret}".encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")


def _host(url: URL) -> str:
    host = f"[{url.raw_host}]" if ":" in (url.raw_host or "") else url.raw_host
    return f"{host}" if url.is_default_port() else f"{host}:{url.port}"
