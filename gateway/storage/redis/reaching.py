"""Why a server cannot be reached, in words of whoever has to do something about it."""

import ssl
from collections.abc import Iterator

from gateway.errors import Overloaded

UNTRUSTED = "its certificate is not trusted", "name the authority that signed it with `?ssl_ca_certs=FILE` in `log:`"
NO_TLS = "it does not speak TLS there", "write redis:// in `log:`, or the port where it does"
OURS = "if it wants a certificate of ours, name it with `?ssl_certfile=FILE&ssl_keyfile=FILE` in `log:`"
OF_TLS = {
    "CERTIFICATE_VERIFY_FAILED": UNTRUSTED,
    "NO_CERTIFICATE_OR_CRL_FOUND": ("ssl_ca_certs names a file that has none", "name a file in PEM format in `log:`"),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": ("it wants a certificate of ours", OURS.partition(", ")[2]),
    "WRONG_VERSION_NUMBER": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
}
"""By the reason that the library gives: what is wrong, and what to do."""
LOST = ("reset by peer", "Connection lost", "closed by server")
WHEN_SILENT = "start it, or write redis:// in `log:` if it does not speak TLS there"
WHEN_LOST = {"redis": "if it speaks TLS there, write rediss:// in `log:`", "rediss": OURS}


class Unreachable(Overloaded):
    """The server cannot be reached just now, or does not take what it is given."""

    hint = "start it, or name another server or log in `log:`"
    was_sent = False
    """Whether the server may have got the question, and done what it was asked for."""


def unreachable(shown: str, error: BaseException | str) -> Unreachable:
    """The error for a server of which that was heard; `shown` is its address without its password."""
    why, hint = (error, "") if isinstance(error, str) else _told(error, shown.partition(":")[0])
    made = Unreachable(f"Redis at {shown} cannot be reached: {why}")
    made.hint = hint or Unreachable.hint
    return made


def _told(error: BaseException, scheme: str) -> tuple[str, str]:
    for one in _chain(error):
        if isinstance(one, ssl.SSLError) and one.reason:
            return _of_tls(one)
    words = str(error).rstrip(".")
    if not words:
        return "it does not answer", WHEN_SILENT if scheme == "rediss" else ""
    return words, WHEN_LOST.get(scheme, "") if any(mark in words for mark in LOST) else ""


def _of_tls(error: ssl.SSLError) -> tuple[str, str]:
    said = getattr(error, "verify_message", "").rstrip(".") or error.reason.replace("_", " ").lower()
    why, hint = OF_TLS.get(error.reason, ("TLS cannot be spoken with it", ""))
    if "mismatch" in said:
        why, hint = "its certificate is for another name", "write the name that it was made for in `log:`"
    return f"{why} ({said})", hint


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
