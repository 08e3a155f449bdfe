"""The proxies of deploy/: our files with the addresses, certificates and times of a test; nothing else is changed."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
NAME, PUBLIC_NAME = "localhost", "gateway.example.com"
"""Clients connect to the first; the second is the name in our files."""
CUT_SECONDS, SILENT_SECONDS = 3, 8
"""nginx cuts what is silent for CUT_SECONDS; the agent says nothing for SILENT_SECONDS."""


@dataclass(frozen=True)
class Site:
    """Where a proxy finds its servers (HOST:PORT) and its certificate (server.crt, server.key); where it listens."""

    servers: list[str]
    folder: Path
    https: int
    http: int


def changed(file: str, changes: dict[str, str]) -> str:
    """A file of deploy/; whatever is to be changed must be in it."""
    text = (ROOT / "deploy" / file).read_text()
    for old, new in changes.items():
        text, count = re.subn(old, new, text)
        assert count, f"deploy/{file} has no {old}"
    return text


def nginx(site: Site, _published: Callable[[], Path]) -> list[str | Path]:
    text = changed("nginx.conf", {
        **{f"gateway-{number}:18900": server for number, server in enumerate(site.servers, 1)},
        r"/etc/nginx/tls/": f"{site.folder}/", r"/run/nginx\.pid": f"{site.folder}/pid",
        r"listen 443 ssl": f"listen 127.0.0.1:{site.https} ssl", r"listen 80": f"listen 127.0.0.1:{site.http}",
        r"proxy_read_timeout 120s": f"proxy_read_timeout {CUT_SECONDS}s",
        r"worker_connections 20000": "worker_connections 500",
    })
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    text = text.replace("http {", "http {\n" + "".join(f"{one}_temp_path {site.folder}/{one};\n" for one in places), 1)
    (site.folder / "nginx.conf").write_text(text)
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "nginx is needed"
    return [program, "-p", site.folder, "-c", site.folder / "nginx.conf", "-e", site.folder / "errors",
            "-g", "daemon off;"]


def caddy(site: Site, published: Callable[[], Path]) -> list[str | Path]:
    """A certificate of ours instead of one that Caddy asks an authority for."""
    tls = f"{site.folder}/server.crt {site.folder}/server.key"
    text = changed("Caddyfile", {
        **{rf"10\.0\.0\.1{number}:18900": server for number, server in enumerate(site.servers, 1)},
        f"{PUBLIC_NAME} {{": f"{PUBLIC_NAME}, {NAME} {{\n\tbind 127.0.0.1\n\ttls {tls}",
    })
    options = f"admin off\n storage file_system {site.folder}\n https_port {site.https}\n http_port {site.http}"
    (site.folder / "Caddyfile").write_text(f"{{\n {options}\n}}\n{text}")
    return [published() / "caddy", "run", "--config", site.folder / "Caddyfile"]


def traefik(site: Site, published: Callable[[], Path]) -> list[str | Path]:
    """The static settings are those that the head of the file asks for."""
    text = changed("traefik.yaml", {
        **{rf"10\.0\.0\.1{number}:18900": server for number, server in enumerate(site.servers, 1)},
        f"Host\\(`{PUBLIC_NAME}`\\)": f"Host(`{PUBLIC_NAME}`) || Host(`{NAME}`)", r"{certResolver: default}": "{}",
    })
    head = text.partition("# Static settings:\n")[2].partition("http:\n")[0]
    static = yaml.safe_load("".join(line.removeprefix("#") for line in head.splitlines(keepends=True)))
    static["entryPoints"]["web"]["address"] = f"127.0.0.1:{site.http}"
    static["entryPoints"]["websecure"]["address"] = f"127.0.0.1:{site.https}"
    certificate = {"certFile": f"{site.folder}/server.crt", "keyFile": f"{site.folder}/server.key"}
    (site.folder / "dynamic.yaml").write_text(f"{text}\n{yaml.safe_dump({'tls': {'certificates': [certificate]}})}")
    (site.folder / "static.yaml").write_text(yaml.safe_dump({
        **static, "providers": {"file": {"filename": f"{site.folder}/dynamic.yaml"}},
        "global": {"checkNewVersion": False, "sendAnonymousUsage": False},
    }))
    return [published() / "traefik", f"--configFile={site.folder}/static.yaml"]


PROXIES: dict[str, Callable[[Site, Callable[[], Path]], list[str | Path]]] = {
    "nginx": nginx, "caddy": caddy, "traefik": traefik}
