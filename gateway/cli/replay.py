"""`dragoman replay`: prints the records of a session, with secrets masked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigFile, fail, is_address, load_settings, report_errors

if TYPE_CHECKING:
    from gateway.config import Config

TIMEOUT_SECONDS = 30.0
"""Seconds to wait for a response of the server."""


def replay(
    session: Annotated[str, typer.Argument(help="The session's id.", metavar="SESSION")],
    config: ConfigFile = None,
    url: Annotated[
        str | None, typer.Option(help="The URL of the server, instead of the one in the settings.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="DRAGOMAN_KEY", help="The key for the server, if it needs one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, nothing shortened.")] = False,
) -> None:
    """Print what happened in a session, record by record; secrets are always shown as ***.

    Example: [b]dragoman replay sess_4f2a --json[/b]

    The command asks the running server for the records, wherever its log is.
    """
    from msgspec import MsgspecError

    import gateway.model as m
    from gateway.logging import mask_secrets

    from .record_format import format_record

    with report_errors():
        chosen = load_settings(config) if url is None else None
        address = url or _address(chosen)
        for line in _lines(address.rstrip("/"), session, key):
            try:
                record = mask_secrets(m.decode_record(line))
            except MsgspecError as error:
                fail(f"{address} sent something that is not a record: {error}; is it a server of this version?")
            typer.echo(m.encode_record(record).decode() if as_json else format_record(record))


def _address(config: "Config | None") -> str:
    """Return the URL of the server of these settings, as seen from this machine."""
    assert config is not None
    if config.port == 0:
        fail("the settings say `port: 0`, so the port is not known; name the server with --url http://HOST:PORT")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)  # noqa: S104
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if config.tls else 'http'}://{host}:{config.port}"


def _lines(address: str, session: str, key: str | None) -> Iterator[bytes]:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.parse import quote
    from urllib.request import ProxyHandler, Request, build_opener

    if not is_address(address):
        fail(f"'{address}' is not an http or https address")
    request = Request(f"{address}/replay/{quote(session, safe='')}")  # noqa: S310  # the scheme was looked at above
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with build_opener(ProxyHandler({})).open(request, timeout=TIMEOUT_SECONDS) as answer:
            yield from filter(None, map(bytes.strip, answer))
    except HTTPError as error:
        fail(_STATUS_TEXTS.get(error.code, f"{address} answered {error.code} {error.reason}").format(session=session))
    except (OSError, HTTPException) as error:
        fail(f"{address} cannot be reached: {getattr(error, 'reason', error)}; is it running (`dragoman serve`), "
             "or is it elsewhere (--url)?")


_STATUS_TEXTS = {
    401: "a key is required; give one with --key or in DRAGOMAN_KEY",
    403: "this key may not see session '{session}'",
    404: "there is no session '{session}'",
}
