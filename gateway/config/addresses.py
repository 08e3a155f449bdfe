"""The address of a server that keeps the log: what may stand in it, looked at before anybody connects."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

from gateway.marks import Marked, Problem, nearest

SERVERS = ("redis://", "rediss://", "unix://")
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Words of an address that name a file, seen from the folder of the settings."""
WORDS = {
    "redis": ("prefix", "db"),
    "unix": ("prefix", "db"),
    "rediss": ("prefix", "db", *FILES, "ssl_password", "ssl_check_hostname", "ssl_cert_reqs", "ssl_ciphers"),
}
SUCH = {
    "redis": "redis://HOST:PORT/DB?prefix=WORD",
    "rediss": "rediss://HOST:PORT/DB?ssl_ca_certs=FILE",
    "unix": "unix:///PATH?db=NUMBER, with three slashes",
}


def check_address(document: Marked, log: str) -> Iterator[Problem]:
    """Its password is nobody's to read, so the address is not repeated."""
    scheme, place = log.partition("://")[0], document.place(("log",))
    try:
        parts = urlsplit(log)
        named = parts.path if scheme == "unix" else parts.hostname
        wrong = not named or (parts.port or 0) < 0
    except ValueError:
        wrong = True
    if wrong:
        yield Problem(place, f"that is no address of a {scheme}:// server", f"write it as {SUCH[scheme]}")
        return
    for message, hint in _misspelt(scheme, parts, Path(document.file).parent):
        yield Problem(place, message, hint)
    if find_spec("redis") is None or find_spec("hiredis") is None:
        yield Problem(place, "log: redis:// needs the packages redis and hiredis",
                      "install them, in the folder of Dragoman: .venv/bin/pip install -e '.[redis]'")


def _misspelt(scheme: str, parts: SplitResult, base: Path) -> Iterator[tuple[str, str]]:
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    databases = [words["db"]] if "db" in words else []
    if scheme != "unix" and parts.path.strip("/"):
        databases.append(parts.path.strip("/"))
    for database in databases:
        if not database.isdecimal():
            yield f"the database of a {scheme}:// server is a number", f"write it as {SUCH[scheme]}"
    for word, value in words.items():
        if word not in WORDS[scheme]:
            yield (f"an address of a {scheme}:// server has no '{word}'",
                   nearest(word, WORDS[scheme]) or f"there are: {', '.join(WORDS[scheme])}")
        elif word in FILES and not (base / value).is_file():
            yield f"{word}: there is no file '{value}'", "it is looked for beside the config file"
