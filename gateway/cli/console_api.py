"""A client of the console's API: asks a running gateway about its sessions, whatever dialects it serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import orjson

from .options import fail

if TYPE_CHECKING:
    from gateway.migration import ImportNews

API = "/console/api"
PAGE = 200
"""How many sessions are asked for at once."""


def read_sessions(url: str, key: str | None, timeout: float, most: int) -> list[dict[str, object]]:
    """The sessions that the key may see, those that changed last first, so many at most."""
    found = list[dict[str, Any]]()
    for page in _pages(url, key, timeout, min(most, PAGE)):
        found += page
        if len(found) >= most:
            break
    return found[:most]


def read_usage(url: str, key: str | None, timeout: float, since: str) -> dict[str, object]:
    """What the clients of a running gateway have used; only admins may read it."""
    query = urlencode({"since": since})
    found = _get(f"{url.rstrip('/')}{API}/usage?{query}", url, key, timeout)
    if not isinstance(found, dict):
        fail(f"{url} sent something that is not the usage of clients; is it a gateway of this version?")
    return found


def _pages(url: str, key: str | None, timeout: float, limit: int) -> Iterator[list[dict[str, object]]]:
    cursor: str | None = None
    while True:
        query = urlencode({"limit": limit, **({"cursor": cursor} if cursor else {})})
        page = _get(f"{url.rstrip('/')}{API}/sessions?{query}", url, key, timeout)
        if not isinstance(page, dict) or not isinstance(page.get("sessions"), list):
            fail(f"{url} sent something that is not a list of sessions; is it a gateway of this version?")
        yield page["sessions"]
        cursor = page.get("next")
        if cursor is None:
            return


def run_import(url: str, key: str | None, timeout: float, body: dict[str, object]) -> "Iterator[ImportNews]":
    """Have a running gateway import sessions; what it tells of each, and at last how the import ended."""
    import msgspec

    from gateway.migration import ImportNews

    read = msgspec.json.Decoder(ImportNews).decode
    with _open(f"{url.rstrip('/')}{API}/imports", url, key, timeout, orjson.dumps(body)) as lines:
        try:
            yield from (read(line) for line in lines if line.strip())
        except msgspec.MsgspecError:
            fail(f"{url} sent something that is no report of an import; is it a gateway of this version?")


def _get(address: str, url: str, key: str | None, timeout: float) -> object:
    with _open(address, url, key, timeout) as answer:
        try:
            return orjson.loads(answer.read())
        except orjson.JSONDecodeError:
            fail(f"{url} sent something that is not JSON; is it a gateway?")


@contextmanager
def _open(
    address: str, url: str, key: str | None, timeout: float, body: bytes | None = None,
) -> Iterator[HTTPResponse]:
    """The answer to a GET or, with a body, to a POST of JSON; errors are reported to the user."""
    request = Request(address, data=body)  # noqa: S310  # the caller has looked at the scheme
    request.add_header("Content-Type", "application/json")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=timeout) as answer:
            yield answer
    except HTTPError as error:
        said = f"{url} answered {error.code} {error.reason}{_reason(error)}"
        fail(_STATUS_TEXTS[error.code].format(url=url) if error.code in _STATUS_TEXTS else said)
    except (OSError, HTTPException) as error:
        fail(f"{url} cannot be reached: {getattr(error, 'reason', error)}; is it running, and is that its address?")


def _reason(error: HTTPError) -> str:
    """What the gateway says about a refused request."""
    try:
        said = orjson.loads(error.read())
    except (OSError, HTTPException, orjson.JSONDecodeError):
        return ""
    message = said.get("error", {}).get("message") if isinstance(said, dict) else None
    return f": {message}" if message else ""


_STATUS_TEXTS = {
    401: "a key is required; give one with --key or in DRAGOMAN_KEY",
    403: "only admins may do this: list the user of the key under `admins:` in config.yaml",
    404: "{url} has no console (`console: off`, or an older version): name a dialect's address, such as {url}/PATH",
}
