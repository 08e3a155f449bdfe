"""Types of the settings that say who may reach the server: host names, origins, proxies and a certificate."""

import re
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from gateway.errors import Invalid

if TYPE_CHECKING:
    from ssl import SSLContext, SSLError

WILDCARD = "*"
LOOPBACK = "loopback"
_HOST_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?|\[?[0-9a-f:.]+\]?", re.IGNORECASE)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+/?", re.IGNORECASE)


def _host(name: str) -> str:
    if name != WILDCARD and not _HOST.fullmatch(name):
        raise ValueError("must be a name or an address without scheme and port: gateway.example.com, *.example.com")
    return name


def _origin(origin: str) -> str:
    if origin not in (WILDCARD, LOOPBACK) and not _ORIGIN.fullmatch(origin):
        raise ValueError(f"must be an origin without a path, as https://app.example.com, or '{LOOPBACK}', or '*'")
    return origin


def _host_or_network(entry: str) -> str:
    if not _HOST_NAME.fullmatch(entry):
        try:
            ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            raise ValueError("expected a host name (mcp.example, *.example) or a network (10.0.0.0/8, ::1)") from None
    return entry


def _network(network: str) -> str:
    try:
        ip_network(network, strict=False)
    except ValueError:
        raise ValueError("must be an IP address or a network, as 10.0.0.5 or 10.0.0.0/8") from None
    return network


Host = Annotated[str, AfterValidator(_host)]
Origin = Annotated[str, AfterValidator(_origin)]
Network = Annotated[str, AfterValidator(_network)]
HostOrNetwork = Annotated[str, Field(min_length=1), AfterValidator(_host_or_network)]


def make_tls_context(certificate: Path, key: Path) -> "SSLContext":
    """Return a TLS context with this certificate; raises `Invalid` if the two files do not fit."""
    import ssl  # most settings have no certificate

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, certificate, key)
    return context


def load_certificate(context: "SSLContext", certificate: Path, key: Path) -> None:
    """Use this certificate for new connections; open connections keep the old one."""
    import ssl

    for file in (certificate, key):
        try:
            file.read_bytes()
        except OSError as error:
            raise Invalid(f"{file} cannot be read: {error.strerror}") from None
    try:
        context.load_cert_chain(certificate, key, password=_no_passphrase)
    except ssl.SSLError as error:
        raise Invalid(f"{certificate} and {key} cannot be used: {_tls_reason(error)}") from None


def _no_passphrase() -> str:
    raise Invalid("the key is protected by a passphrase; store it without one, and let only this user read the file")


def _tls_reason(error: "SSLError") -> str:
    reasons = {
        "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
        "KEY_TYPE_MISMATCH": "the key does not belong to the certificate",
    }
    otherwise = "they must be PEM files; the first file has the certificate, and after it the chain"
    return reasons.get(error.reason or "", otherwise)
