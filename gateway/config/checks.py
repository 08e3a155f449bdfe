"""Checks of the settings beyond their types; each check reads the document and yields problems.

The checks read the values as written, not the validated ones, so that they run even if another value has a wrong type.
"""

import os
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from gateway.bucket_location import BucketLocation
from gateway.errors import Invalid
from gateway.json_values import JsonLimitExceeded, JsonValue, check_limits
from gateway.yaml_positions import NodePath, Problem, YamlDocument, suggest

from .access import make_tls_context
from .settings import Config

LOG_KINDS = ("memory", "sqlite")
OTEL_PACKAGES = ("opentelemetry.sdk", "opentelemetry.proto", "requests")
# The regular expression that semver.org suggests, without groups.
SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-((0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
)


def check(document: YamlDocument) -> Iterator[Problem]:
    """Run all checks."""
    for one in CHECKS:
        yield from one(document)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach the host."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _open_to_the_network(document: YamlDocument) -> Iterator[Problem]:
    host, auth = _setting(document, "host"), _setting(document, "auth")
    if auth == "none" and isinstance(host, str) and not is_loopback(host):
        yield Problem(
            document.position(("auth",) if "auth" in document.value else ("host",)),
            f"auth: none is for this machine only, but on host '{host}' others could use the agents",
            "set `auth: keys` and make a key with `dragoman keys add NAME`, or set `host: 127.0.0.1`",
        )


def _certificate(document: YamlDocument) -> Iterator[Problem]:
    tls, home = _mapping(_setting(document, "tls")), Path(document.file).parent
    certificate, key = tls.get("certificate"), tls.get("key")
    if isinstance(certificate, str) and isinstance(key, str):
        try:
            make_tls_context(home / certificate, home / key)
        except Invalid as error:
            yield Problem(document.position(("tls",), key=True), error.message)


def _oidc(document: YamlDocument) -> Iterator[Problem]:
    auth, oidc = _setting(document, "auth"), document.value.get("oidc")
    wanted = auth == "oidc" or (isinstance(auth, list | tuple) and "oidc" in auth)
    if wanted and not isinstance(oidc, dict):
        yield Problem(document.position(("auth",)), "auth: oidc needs to know who signs the tokens",
                      "add `oidc: {issuer: https://…, audience: …}`")
    for name in ("issuer", "jwks_url"):
        url = _mapping(oidc).get(name)
        if isinstance(url, str) and url and not _is_safe_issuer(url):
            yield Problem(document.position(("oidc", name)), f"'{url}' is not an https:// address",
                          "an attacker who can change the response can sign in as any user")


def _is_safe_issuer(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    except ValueError:
        return False


def _unknown_log(document: YamlDocument) -> Iterator[Problem]:
    log = _setting(document, "log")
    if not isinstance(log, str) or log in LOG_KINDS or (log.startswith("sqlite:") and log != "sqlite:"):
        return
    if log.startswith(SERVER_SCHEMES):
        yield from check_log_address(document, log)
        return
    hint = suggest(log, LOG_KINDS) or f"there are: {', '.join(LOG_KINDS)}, sqlite:FILE, redis://HOST:PORT/DB"
    yield Problem(document.position(("log",)), f"unknown log '{log.partition('://')[0]}'", hint)


def _files(document: YamlDocument) -> Iterator[Problem]:
    files = _setting(document, "files")
    if not isinstance(files, str) or "://" not in files:
        return
    try:
        BucketLocation.read(files, os.environ)
    except Invalid as error:
        yield Problem(document.position(("files",)), error.message)
    if "://" in str(_setting(document, "log")) and not _setting(document, "secrets_key"):
        yield Problem(document.position(("files",)), "servers that share no folder need a common key for secrets",
                      "set DRAGOMAN_SECRETS_KEY, the same 32 characters or more for all servers")


def _nothing_to_serve(document: YamlDocument) -> Iterator[Problem]:
    for room, such in (("agents", "{demo: {backend: demo}}"), ("dialects", "{NAME: }")):
        if not _setting(document, room):
            yield Problem(document.position((room,)), f"'{room}' names nothing to serve",
                          f"name one at least: `{room}: {such}`")


def _mounts(document: YamlDocument) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name, dialect in _named_sections(document, "dialects"):
        mount, at = dialect.get("mount"), document.position(("dialects", name, "mount"))
        if not isinstance(mount, str):
            continue
        if not mount.startswith("/"):
            yield Problem(at, f"'{mount}' is not a path", f"write it as '/{mount}'")
        first = taken.setdefault(mount.strip("/"), name)
        if first != name:
            yield Problem(at, f"'{mount}' is where '{first}' is mounted already")


def _mappings(document: YamlDocument) -> Iterator[Problem]:
    served = dict(_named_sections(document, "dialects"))
    for name, file in _mapping(_setting(document, "mappings")).items():
        if name not in served:
            hint = suggest(name, served) or "only a dialect of 'dialects' has a table"
            yield Problem(document.position(("mappings", name), key=True), f"'{name}' is not served", hint)
        elif isinstance(file, str) and not (Path(document.file).parent / file).is_file():
            yield Problem(document.position(("mappings", name)), f"there is no file '{file}'",
                          "the path starts at the folder of the config file")


def _dialect_folders(document: YamlDocument) -> Iterator[Problem]:
    folders = _setting(document, "dialect_folders")
    for index, folder in enumerate(folders if isinstance(folders, list) else ()):
        if isinstance(folder, str) and not (Path(document.file).parent / folder / "mappings").is_dir():
            yield Problem(document.position(("dialect_folders", index)), f"there is no folder 'mappings' in '{folder}'",
                          "the path starts at the folder of the config file")


def _agents(document: YamlDocument) -> Iterator[Problem]:
    for name, agent in _named_sections(document, "agents"):
        yield from _version(document, ("agents", name, "version"), agent.get("version"))
        yield from _duplicates(document, ("agents", name, "tools"), agent.get("tools"))
        yield from _duplicates(document, ("agents", name, "options"), agent.get("options"))
        for at, option in _list_items(("agents", name, "options"), agent.get("options")):
            yield from _select(document, at, option)


def _version(document: YamlDocument, at: NodePath, version: object) -> Iterator[Problem]:
    if isinstance(version, str) and not SEMVER.fullmatch(version):
        yield Problem(document.position(at), f"'{version}' is not a semantic version", "write it as 1.0.0")


def _duplicates(document: YamlDocument, at: NodePath, items: object) -> Iterator[Problem]:
    seen: set[str] = set()
    for path, item in _list_items(at, items):
        name = item.get("name")
        if isinstance(name, str) and name in seen:
            yield Problem(document.position((*path, "name")), f"'{name}' is in '{at[-1]}' a second time")
        seen.add(str(name))


def _select(document: YamlDocument, at: NodePath, option: dict[JsonValue, JsonValue]) -> Iterator[Problem]:
    choices, default = option.get("options"), option.get("default")
    if option.get("type") != "select":
        if choices:
            yield Problem(
                document.position((*at, "options"), key=True), "only a select has options", "add `type: select`"
            )
    elif not isinstance(choices, list) or not choices:
        yield Problem(
            document.position((*at, "type")), "a select needs something to choose from", "add `options: [...]`"
        )
    elif default not in choices:
        message = f"the default '{default}' is not among the options" if default else "a select needs a default"
        words = ", ".join(map(str, choices))
        hint = suggest(str(default), map(str, choices)) or f"it is one of: {words}"
        yield Problem(document.position((*at, "default")), message, hint)


def _route(document: YamlDocument) -> Iterator[Problem]:
    """Check the agents that a rule names, and that it can fit a session at all."""
    agents = [str(name) for name, _ in _named_sections(document, "agents")]
    for at, rule in _list_items(("route",), _setting(document, "route")):
        named = rule.get("agents")
        sources = [*enumerate(named)] if isinstance(named, list) else []
        places: list[tuple[NodePath, object]] = [
            ((*at, "to"), rule.get("to")), *(((*at, "agents", number), name) for number, name in sources)]
        for place, name in places:
            if isinstance(name, str) and name not in agents:
                hint = suggest(name, agents) or f"there are: {', '.join(agents)}"
                yield Problem(document.position(place), f"there is no agent '{name}'", hint)
        if sources and all(name == rule.get("to") for _, name in sources):
            message = f"the sessions of '{rule.get('to')}' are run by it already"
            yield Problem(document.position((*at, "agents")), message,
                          "name the agent whose sessions another one shall run")


def _limits(document: YamlDocument) -> Iterator[Problem]:
    """Check the limits of JSON: clients receive parts of the settings as JSON."""
    try:
        check_limits(document.value)
    except JsonLimitExceeded as error:
        yield Problem(document.position(error.path), str(error))


def _telemetry(document: YamlDocument) -> Iterator[Problem]:
    if _mapping(_setting(document, "telemetry")).get("otlp") and not all(map(_is_installed, OTEL_PACKAGES)):
        yield Problem(document.position(("telemetry", "otlp")), "telemetry needs the packages of OpenTelemetry",
                      "pip install 'opentelemetry-proto>=1.45' 'opentelemetry-sdk>=1.45' 'requests>=2.32', "
                      "or Dragoman with its extra 'otel'")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # nor is the package above it
        return False


CHECKS: tuple[Callable[[YamlDocument], Iterator[Problem]], ...] = (
    _open_to_the_network, _certificate, _oidc, _unknown_log, _files, _nothing_to_serve, _mounts, _mappings,
    _dialect_folders, _agents, _route, _limits, _telemetry,
)


# -- reading values of any type ---------------------------------------------------------------------------------------
def _setting(document: YamlDocument, name: str) -> object:
    return document.value.get(name, Config.model_fields[name].default)


def _mapping(value: object) -> dict[Any, JsonValue]:
    return value if isinstance(value, dict) else {}


def _named_sections(document: YamlDocument, room: str) -> Iterator[tuple[str, dict[JsonValue, JsonValue]]]:
    for name, value in _mapping(_setting(document, room)).items():
        yield name, _mapping(value)


def _list_items(at: NodePath, items: object) -> Iterator[tuple[NodePath, dict[JsonValue, JsonValue]]]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        yield (*at, index), _mapping(item)


MOST_PARTITIONS = 1024
SEVERAL_PLACES = r"(\[[0-9a-fA-F:.]+\]|[^\s,:\[\]/]+)(:\d{1,5})?(,(\[[0-9a-fA-F:.]+\]|[^\s,:\[\]/]+)(:\d{1,5})?)*"
"""HOST or HOST:PORT, several with commas between."""
FILE_PARAMETERS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Parameters of a log URL that name a file; paths start at the folder of the settings."""
TLS_PARAMETERS = (*FILE_PARAMETERS, "ssl_password", "ssl_check_hostname", "ssl_cert_reqs", "ssl_ciphers")
SENTINEL_PARAMETERS = ("wait", "sentinel_username", "sentinel_password")
URL_PARAMETERS = {
    "redis": ("prefix", "db"),
    "unix": ("prefix", "db"),
    "rediss": ("prefix", "db", *TLS_PARAMETERS),
    "redis+sentinel": ("prefix", "db", *SENTINEL_PARAMETERS),
    "rediss+sentinel": ("prefix", "db", *SENTINEL_PARAMETERS, *TLS_PARAMETERS),
    "redis+cluster": ("prefix", "wait", "partitions"),
    "rediss+cluster": ("prefix", "wait", "partitions", *TLS_PARAMETERS),
}
SERVER_SCHEMES = tuple(f"{scheme}://" for scheme in URL_PARAMETERS)
URL_EXAMPLES = {
    "redis": "redis://HOST:PORT/DB?prefix=WORD",
    "rediss": "rediss://HOST:PORT/DB?ssl_ca_certs=FILE",
    "unix": "unix:///PATH?db=NUMBER, with three slashes",
    "redis+sentinel": "redis+sentinel://SENTINEL1,SENTINEL2,SENTINEL3/NAME?db=NUMBER&wait=NUMBER",
    "rediss+sentinel": "rediss+sentinel://SENTINEL1,SENTINEL2,SENTINEL3/NAME?ssl_ca_certs=FILE",
    "redis+cluster": "redis+cluster://HOST1:PORT,HOST2:PORT,HOST3:PORT?partitions=NUMBER&wait=NUMBER",
    "rediss+cluster": "rediss+cluster://HOST1:PORT,HOST2:PORT,HOST3:PORT?ssl_ca_certs=FILE",
}


def check_log_address(document: YamlDocument, log: str) -> Iterator[Problem]:
    """Check the URL of a Redis server. Messages do not repeat the URL, because it has a password."""
    scheme, place = log.partition("://")[0], document.position(("log",))
    try:
        parts = urlsplit(log)
        if "+" in scheme:
            wrong = not re.fullmatch(SEVERAL_PLACES, parts.netloc.rpartition("@")[2])
            wrong = wrong or scheme.endswith("+sentinel") != bool(parts.path.strip("/"))
        else:
            named = parts.path if scheme == "unix" else parts.hostname
            wrong = not named or (parts.port or 0) < 0
    except ValueError:
        wrong = True
    if wrong:
        yield Problem(place, f"this is not an address of a {scheme}:// server", f"write it as {URL_EXAMPLES[scheme]}")
        return
    for message, hint in _parameter_problems(scheme, parts, Path(document.file).parent):
        yield Problem(place, message, hint)
    if find_spec("redis") is None or find_spec("hiredis") is None:
        yield Problem(place, "log: redis:// needs the packages redis and hiredis",
                      "pip install 'redis[hiredis]>=6.4', or Dragoman with its extra 'redis'")


def _parameter_problems(scheme: str, parts: SplitResult, base: Path) -> Iterator[tuple[str, str]]:
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    databases = [words["db"]] if "db" in words else []
    if scheme in ("redis", "rediss") and parts.path.strip("/"):
        databases.append(parts.path.strip("/"))
    for database in databases:
        if not database.isdecimal():
            yield f"the database of a {scheme}:// server is a number", f"write it as {URL_EXAMPLES[scheme]}"
    if not words.get("wait", "1").isdecimal():
        yield "wait is the number of replicas that must have a change", f"write it as {URL_EXAMPLES[scheme]}"
    partitions = words.get("partitions", "1")
    if not partitions.isdecimal() or int(partitions).bit_count() != 1 or int(partitions) > MOST_PARTITIONS:
        yield f"partitions is a power of two, {MOST_PARTITIONS} at most", f"write it as {URL_EXAMPLES[scheme]}"
    if scheme.endswith("+cluster") and "{" in words.get("prefix", ""):
        yield "the prefix of keys in a Redis Cluster has no braces", "they say in which slot a key is"
    for word, value in words.items():
        if word not in URL_PARAMETERS[scheme]:
            yield (f"an address of a {scheme}:// server has no '{word}'",
                   suggest(word, URL_PARAMETERS[scheme]) or f"there are: {', '.join(URL_PARAMETERS[scheme])}")
        elif word in FILE_PARAMETERS and not (base / value).is_file():
            yield f"{word}: there is no file '{value}'", "the path starts at the folder of the config file"
