"""Whom we trust, and who we are: the certificates of TLS connections to upstream servers, as the environment says."""

import os
import ssl
from pathlib import Path

from gateway.errors import BackendFailed

AUTHORITIES = "SSL_CERT_FILE"
CERTIFICATE, KEY = "SSL_CLIENT_CERT_FILE", "SSL_CLIENT_KEY_FILE"


def upstream_context() -> ssl.SSLContext:
    """Return a new context for connections to the servers of the operator."""
    check_authorities()
    context = ssl.create_default_context()  # OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR
    load_client_certificate(context)
    return context


def check_authorities() -> None:
    """Raise `BackendFailed` if the file of the trusted authorities is not there: OpenSSL would say nothing."""
    if (path := os.environ.get(AUTHORITIES)) and not Path(path).is_file():
        raise BackendFailed(f"{AUTHORITIES}: there is no file {path}")


def load_client_certificate(context: ssl.SSLContext) -> None:
    """Add the certificate that servers see if they ask for one; without the variable there is none."""
    if not (certificate := os.environ.get(CERTIFICATE)):
        return
    try:
        context.load_cert_chain(certificate, os.environ.get(KEY) or None, password=_no_password)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        what = "expected a certificate and its key, in PEM format and without a password"
        raise BackendFailed(f"{CERTIFICATE}, {KEY}: {what} ({why})") from None


def _no_password() -> str:
    """OpenSSL would ask at the terminal, and the server would wait."""
    raise ValueError("the key has a password")
