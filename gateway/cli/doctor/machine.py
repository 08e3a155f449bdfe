"""Findings about the machine: versions, the port, files and rights; nothing is changed."""

import errno
import os
import re
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config import Config

LITTLE_SPACE, NO_SPACE = 1024**3, 64 * 1024**2
FILES_BESIDE_CONNECTIONS = 100


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found, and how to mend it."""

    topic: str
    level: Level
    text: str
    mend: str = ""


def ok(topic: str, text: str) -> Finding:
    return Finding(topic, Level.OK, text)


def warning(topic: str, text: str, mend: str) -> Finding:
    return Finding(topic, Level.WARNING, text, mend)


def problem(topic: str, text: str, mend: str) -> Finding:
    return Finding(topic, Level.PROBLEM, text, mend)


# -- versions ---------------------------------------------------------------------------------------------------------

REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([\d.]+)")


def check_versions() -> Iterator[Finding]:
    """Python, SQLite, and the libraries that Dragoman always needs."""
    yield ok("versions", f"Python {sys.version.split()[0]}")
    yield from _libraries()
    memory = sqlite3.connect(":memory:")
    try:
        memory.execute("CREATE VIRTUAL TABLE found USING fts5(words)")
        yield ok("versions", f"SQLite {sqlite3.sqlite_version}")
    except sqlite3.OperationalError:
        yield problem("versions", f"SQLite {sqlite3.sqlite_version} has no full-text search (FTS5)",
                      "use a Python whose SQLite has FTS5, such as the one of python.org or Debian")
    finally:
        memory.close()


def _libraries() -> Iterator[Finding]:
    wrong = False
    for line in metadata.requires("dragoman") or ():
        found = REQUIREMENT.match(line)
        if found is None or "extra ==" in line or "win32" in line:
            continue
        name, least = found.groups()
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = ""
        if version_numbers(version) < version_numbers(least):
            wrong = True
            yield problem("versions", f"{name} {version or 'is not installed'}; {least} or newer is needed",
                          f"{Path(sys.executable).parent / 'pip'} install '{name}>={least}'")
    if not wrong:
        yield ok("versions", f"Dragoman {metadata.version('dragoman')}, and the libraries that it needs")


def version_numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


# -- port -------------------------------------------------------------------------------------------------------------

def check_port(config: "Config") -> Iterator[Finding]:
    """Whether the server could listen."""
    where = f"{config.host}:{config.port}"
    try:
        [place, *_] = socket.getaddrinfo(config.host.strip("[]"), config.port, type=socket.SOCK_STREAM)
        with socket.socket(place[0], place[1]) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(place[4])
    except socket.gaierror:
        yield problem("port", f"there is no host '{config.host}'", "set another `host:`, such as 127.0.0.1")
    except OSError as error:
        yield _unusable_port(error, where, config)
    else:
        yield ok("port", f"{where} is free")


def _unusable_port(error: OSError, where: str, config: "Config") -> Finding:
    if error.errno == errno.EADDRINUSE:
        if _is_dragoman(config):
            return ok("port", f"a server that seems to be Dragoman answers on {where}")
        return problem("port", f"another program uses {where}", "stop that program, or set another `port:`")
    if error.errno == errno.EACCES:
        return problem("port", f"this user may not listen on {where}", "set a `port:` of 1024 or above")
    if error.errno == errno.EADDRNOTAVAIL:
        return problem("port", f"this machine does not have the address {config.host}",
                       "set `host:` to an address of this machine; 0.0.0.0 is all of them")
    return problem("port", f"{where} cannot be used: {error.strerror}", "set another `host:` or `port:`")


def _is_dragoman(config: "Config") -> bool:
    """Say whether the program at the port answers `/healthz` as a server of ours does."""
    import ssl
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)  # noqa: S104  # to connect to, not bind
    context = ssl._create_unverified_context()  # noqa: S323  # it only asks who is there
    kind = HTTPSConnection(host, config.port, timeout=2, context=context) if config.tls else HTTPConnection(
        host, config.port, timeout=2)
    try:
        kind.request("GET", "/healthz")
        answer = kind.getresponse()
        return answer.status == 200 and b'"status"' in answer.read(1000)
    except (OSError, HTTPException):
        return False
    finally:
        kind.close()


# -- files and rights -------------------------------------------------------------------------------------------------

def check_files(config: "Config") -> Iterator[Finding]:
    """The data folder and what is in it: whether this user may write it, and whether only this user may read it."""
    folder = config.data
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    if not existing.is_dir():
        yield problem("files", f"{existing} is not a folder", "set another `data:`")
        return
    if not os.access(existing, os.W_OK | os.X_OK):
        yield problem("files", f"this user ({_user()}) may not write to {existing}",
                      f"chown {_user()} {existing}, or set another `data:`")
    elif folder.exists():
        yield ok("files", f"this user ({_user()}) may write to {folder}")
    else:
        yield ok("files", f"{folder} does not exist yet; the server makes it")
    yield from _space(existing)
    yield from _private(config)


def _space(folder: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    shown = f"{free // 1024**2:,} MB are free on the disk of {folder}"
    if free < NO_SPACE:
        yield problem("files", shown, "free some space; without it nothing can be stored")
    elif free < LITTLE_SPACE:
        yield warning("files", shown, "free some space before the disk is full")
    else:
        yield ok("files", shown)


def _private(config: "Config") -> Iterator[Finding]:
    """Files with secrets in them, which nobody but this user should read."""
    from gateway.storage_factory import database_path

    places = [config.data, database_path(config), config.data / "secrets.key"]
    places += [config.tls.key] if config.tls else []
    if config.file and (config.secrets_key.get_secret_value() or "@" in config.log):
        places.append(config.file)
    for place in places:
        if place.exists() and (mode := stat.S_IMODE(place.stat().st_mode)) & 0o077:
            closed = "700" if place.is_dir() else "600"
            yield warning("rights", f"others may read {place} (mode {mode:o}), which has secrets",
                          f"chmod {closed} {place}")


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user needs no name
        return str(os.getuid())


def check_open_files(config: "Config") -> Iterator[Finding]:
    """How many files the process may open: every connection is one."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = config.limits.max_connections + FILES_BESIDE_CONNECTIONS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        yield warning("rights", f"the process may open {hard:,} files, too few for limits.max_connections "
                      f"({config.limits.max_connections:,})", f"raise the limit (ulimit -n {wanted}; systemd: "
                      f"LimitNOFILE={wanted}), or lower limits.max_connections")
    else:
        yield ok("rights", f"the process may open {soft if soft == hard else f'{soft:,} to {hard:,}'} files")
