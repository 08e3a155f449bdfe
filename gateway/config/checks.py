"""What must be true of the settings beyond their shape; each check reads the document and yields problems.

The checks read what was written, not what was made of it, so that a mistake of shape elsewhere hides nothing.
"""

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import Invalid
from gateway.marks import Marked, Path_, Problem, nearest
from gateway.model import LimitExceeded, check_limits

from .access import server_context
from .addresses import SERVERS, check_address
from .settings import Config

LOGS = ("memory", "sqlite")

# The expression that semver.org suggests, its groups left out.
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
)


def check(document: Marked) -> Iterator[Problem]:
    """Every problem of every check."""
    for one in CHECKS:
        yield from one(document)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _reached_by_strangers(document: Marked) -> Iterator[Problem]:
    host, auth = _setting(document, "host"), _setting(document, "auth")
    if auth == "none" and isinstance(host, str) and not is_loopback(host):
        yield Problem(
            document.place(("auth",) if "auth" in document.value else ("host",)),
            f"auth: none is for this machine only, but on host '{host}' others could use the agents",
            "set `auth: keys` and make a key with `dragoman keys add NAME`, or set `host: 127.0.0.1`",
        )


def _certificate(document: Marked) -> Iterator[Problem]:
    tls, home = _mapping(_setting(document, "tls")), Path(document.file).parent
    certificate, key = tls.get("certificate"), tls.get("key")
    if isinstance(certificate, str) and isinstance(key, str):
        try:
            server_context(home / certificate, home / key)
        except Invalid as error:
            yield Problem(document.place(("tls",), key=True), error.message)


def _oidc(document: Marked) -> Iterator[Problem]:
    auth, oidc = _setting(document, "auth"), document.value.get("oidc")
    wanted = auth == "oidc" or (isinstance(auth, list | tuple) and "oidc" in auth)
    if wanted and not isinstance(oidc, dict):
        yield Problem(document.place(("auth",)), "auth: oidc needs to know who signs the tokens",
                      "add `oidc: {issuer: https://…, audience: …}`")
    for name in ("issuer", "jwks_url"):
        url = _mapping(oidc).get(name)
        if isinstance(url, str) and url and not _is_trustworthy(url):
            yield Problem(document.place(("oidc", name)), f"'{url}' is not an https:// address",
                          "whoever can change what is fetched from there can come in as anybody")


def _is_trustworthy(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    except ValueError:
        return False


def _unknown_log(document: Marked) -> Iterator[Problem]:
    log = _setting(document, "log")
    if not isinstance(log, str) or log in LOGS or (log.startswith("sqlite:") and log != "sqlite:"):
        return
    if log.startswith(SERVERS):
        yield from check_address(document, log)
        return
    hint = nearest(log, LOGS) or f"there are: {', '.join(LOGS)}, sqlite:FILE, redis://HOST:PORT/DB"
    yield Problem(document.place(("log",)), f"unknown log '{log.partition('://')[0]}'", hint)


def _nothing_to_serve(document: Marked) -> Iterator[Problem]:
    for room, such in (("agents", "{demo: {backend: demo}}"), ("dialects", "{NAME: }")):
        if not _setting(document, room):
            yield Problem(document.place((room,)), f"'{room}' names nothing to serve",
                          f"name one at least: `{room}: {such}`")


def _mounts(document: Marked) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name, dialect in _named(document, "dialects"):
        mount, at = dialect.get("mount"), document.place(("dialects", name, "mount"))
        if not isinstance(mount, str):
            continue
        if not mount.startswith("/"):
            yield Problem(at, f"'{mount}' is no path", f"write it as '/{mount}'")
        first = taken.setdefault(mount.strip("/"), name)
        if first != name:
            yield Problem(at, f"'{mount}' is where '{first}' is mounted already")


def _mappings(document: Marked) -> Iterator[Problem]:
    served = dict(_named(document, "dialects"))
    for name, file in _mapping(_setting(document, "mappings")).items():
        if name not in served:
            hint = nearest(name, served) or "only a dialect of 'dialects' has a table"
            yield Problem(document.place(("mappings", name), key=True), f"'{name}' is not served", hint)
        elif isinstance(file, str) and not (Path(document.file).parent / file).is_file():
            yield Problem(document.place(("mappings", name)), f"there is no file '{file}'",
                          "it is looked for beside the config file")


def _agents(document: Marked) -> Iterator[Problem]:
    for name, agent in _named(document, "agents"):
        yield from _version(document, ("agents", name, "version"), agent.get("version"))
        yield from _twice(document, ("agents", name, "tools"), agent.get("tools"))
        yield from _twice(document, ("agents", name, "options"), agent.get("options"))
        for at, option in _listed(("agents", name, "options"), agent.get("options")):
            yield from _select(document, at, option)


def _version(document: Marked, at: Path_, version: Any) -> Iterator[Problem]:
    if isinstance(version, str) and not SEMVER.fullmatch(version):
        yield Problem(document.place(at), f"'{version}' is not a semantic version", "write it as 1.0.0")


def _twice(document: Marked, at: Path_, items: Any) -> Iterator[Problem]:
    seen: set[str] = set()
    for path, item in _listed(at, items):
        name = item.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(document.place((*path, "name")), f"'{name}' is in '{at[-1]}' a second time")
        seen.add(str(name))


def _select(document: Marked, at: Path_, option: dict[Any, Any]) -> Iterator[Problem]:
    choices, default = option.get("options"), option.get("default")
    if option.get("type") != "select":
        if choices:
            yield Problem(document.place((*at, "options"), key=True), "only a select has options", "add `type: select`")
    elif not isinstance(choices, list) or not choices:
        yield Problem(document.place((*at, "type")), "a select needs something to choose from", "add `options: [...]`")
    elif default not in choices:
        said = f"the default '{default}' is not among the options" if default else "a select needs a default"
        words = ", ".join(map(str, choices))
        hint = nearest(str(default), map(str, choices)) or f"it is one of: {words}"
        yield Problem(document.place((*at, "default")), said, hint)


def _limits(document: Marked) -> Iterator[Problem]:
    """What the settings hold is told to clients as JSON."""
    try:
        check_limits(document.value)
    except LimitExceeded as error:
        yield Problem(document.place(error.path), str(error))


CHECKS: tuple[Callable[[Marked], Iterator[Problem]], ...] = (
    _reached_by_strangers, _certificate, _oidc, _unknown_log, _nothing_to_serve, _mounts, _mappings, _agents, _limits,
)


# -- reading what may have any shape ----------------------------------------------------------------------------------

def _setting(document: Marked, name: str) -> Any:
    return document.value.get(name, Config.model_fields[name].default)


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _named(document: Marked, room: str) -> Iterator[tuple[str, dict[Any, Any]]]:
    for name, value in _mapping(_setting(document, room)).items():
        yield name, _mapping(value)


def _listed(at: Path_, items: Any) -> Iterator[tuple[Path_, dict[Any, Any]]]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield (*at, index), _mapping(item)
