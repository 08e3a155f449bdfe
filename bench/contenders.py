"""The servers in front of the model service: the gateway with either log, nginx, and LiteLLM's proxy."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from adapters import known_dialects

from .measure import BenchFailure
from .protocols import AapProtocol, ChatProtocol
from .servers import OFTEN_EXPORTED, ONE_DIALECT, ROOT, Contender

KEY = "sk-bench-0123456789abcdef0123456789abcdef"
"""Not a secret; but the gateway searches all responses for it, as for any key."""
LITELLM_HOME = ROOT / ".bench" / "litellm"
GATEWAY = """\
log: {log}
data: data-{port}
dialects: {dialects}
agents:
  bench: {{backend: openai, settings: {{url: "http://127.0.0.1:{upstream}/v1", key: {key}, model: bench}}}}
telemetry: {telemetry}
"""
REMOTE = """\
log: memory
data: data-{port}
dialects: {{aap: {{mount: /aap}}}}
agents:
  bench: {{backend: remote, settings: {{dialect: aap, url: "http://127.0.0.1:{gateway}/aap", agent: bench}}}}
"""
NGINX = """\
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    upstream model {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location = /readyz {{ return 200; }}
        location / {{
            proxy_pass http://model;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
        }}
    }}
}}
"""
LITELLM = """\
model_list:
  - model_name: bench
    litellm_params: {{model: openai/bench, api_base: "http://127.0.0.1:{upstream}/v1", api_key: {key}}}
general_settings: {{master_key: {key}}}
"""


def mock() -> Contender:
    """The model service itself; its column shows the cost without a server in between."""
    return Contender(
        "direct", lambda folder, port: [sys.executable, "-m", "bench.model_service", str(port)], ChatProtocol()
    )


def ours(upstream: int) -> Contender:
    return Contender("dragoman", partial(_gateway_command, upstream, "memory"), AapProtocol("bench"))


def ours_traced(upstream: int, collector: str) -> Contender:
    """The gateway with the log in memory, which sends its spans to a collector."""
    telemetry = f'{{otlp: "{collector}"}}'
    command = partial(_gateway_command, upstream, "memory", telemetry=telemetry)
    return Contender("traced", command, AapProtocol("bench"), environment=OFTEN_EXPORTED)


def ours_durable(upstream: int) -> Contender:
    return Contender("durable", partial(_gateway_command, upstream, "sqlite"), AapProtocol("bench"))


def ours_shared(name: str, upstream: int, log: str) -> Contender:
    """One of several gateways with all dialects that share a log."""
    dialects = f"{{{', '.join(f'{name}: {{}}' for name in known_dialects())}}}"
    return Contender(name, partial(_gateway_command, upstream, log, dialects=dialects), AapProtocol("bench"))


def ours_remote(gateway: int) -> Contender:
    """A second gateway, whose agent is the gateway at that port."""
    return Contender("remote", partial(_remote_command, gateway), AapProtocol("bench"))


def nginx(upstream: int) -> Contender:
    return Contender("nginx", partial(_nginx_command, upstream), ChatProtocol(), has_family=True)


def litellm(upstream: int) -> Contender:
    return Contender(
        "litellm",
        partial(_litellm_command, upstream),
        ChatProtocol(KEY),
        ready_at="/health/liveliness",
        ready_seconds=180.0,
        has_family=True,
        environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"},
    )


def _gateway_command(
    upstream: int, log: str, folder: Path, port: int, telemetry: str = "{}", dialects: str = ONE_DIALECT,
) -> Sequence[str]:
    return _serve(folder, port, GATEWAY.format(
        log=log, port=port, upstream=upstream, key=KEY, telemetry=telemetry, dialects=dialects))


def _remote_command(gateway: int, folder: Path, port: int) -> Sequence[str]:
    return _serve(folder, port, REMOTE.format(port=port, gateway=gateway))


def _serve(folder: Path, port: int, text: str) -> Sequence[str]:
    settings = folder / f"bench-{port}.yaml"
    settings.write_text(text)
    start = "from gateway.cli import main; main()"
    return [sys.executable, "-c", start, "serve", "--config", str(settings), "--port", str(port)]


def nginx_path() -> str | None:
    """The path of nginx; Debian does not have it on the PATH of ordinary users."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _nginx_command(upstream: int, folder: Path, port: int) -> Sequence[str]:
    path, home = nginx_path(), folder / f"nginx-{port}"
    if path is None:
        raise BenchFailure("nginx is not installed")
    home.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    settings = home / "nginx.conf"
    settings.write_text(NGINX.format(folder=home, port=port, upstream=upstream, user=user))
    return [path, "-p", str(home), "-c", str(settings)]


def _litellm_command(upstream: int, folder: Path, port: int) -> Sequence[str]:
    settings = folder / f"litellm-{port}.yaml"
    settings.write_text(LITELLM.format(upstream=upstream, key=KEY))
    return [
        str(LITELLM_HOME / "bin" / "litellm"), "--config", str(settings), "--host", "127.0.0.1", "--port", str(port),
        "--num_workers", "1", "--telemetry", "False",
    ]


def install_litellm() -> None:
    """Install LiteLLM once, into a folder of its own: it needs other versions of our libraries, and many more."""
    if (LITELLM_HOME / "bin" / "litellm").exists():
        return
    print("installing litellm[proxy] into .bench/litellm, about 700 MB, this once", file=sys.stderr, flush=True)
    venv.create(LITELLM_HOME, with_pip=True, clear=True)
    pip = [str(LITELLM_HOME / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "litellm[proxy]"], capture_output=True, text=True)
    if done.returncode:
        raise BenchFailure(f"litellm[proxy] cannot be installed\n{done.stderr[-2000:]}")
