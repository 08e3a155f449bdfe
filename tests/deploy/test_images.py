"""The image and the compose file name what is there, run without rights, and agree with each other."""

import shlex
from pathlib import Path

import pytest
import yaml

from gateway.config import load_config
from tests.support.dockerfile import read_dockerfile

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BUILD, IMAGE = read_dockerfile(DEPLOY / "Dockerfile")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
COPIED = [source for stage in (BUILD, IMAGE) for one in stage.instructions if one.word == "COPY"
          for source in one.sources]


def test_every_file_that_is_copied_is_there_and_is_sent_to_the_builder() -> None:
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    for source in COPIED:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in sent, f"Dockerfile.dockerignore keeps {source} back"


def test_everything_that_the_wheel_needs_is_copied() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "bench"}
    assert packages <= set(COPIED)
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "docs"} <= set(COPIED)


def test_the_image_has_no_tools_and_no_rights() -> None:
    assert BUILD.image == IMAGE.image
    assert IMAGE.image.endswith("-slim")
    assert IMAGE.all("USER") == ["10001:10001"], "a number: Kubernetes must see that it is not root"
    assert not any("pip" in command for command in IMAGE.all("RUN"))
    assert IMAGE.all("VOLUME") == IMAGE.all("WORKDIR") == ["/var/lib/dragoman"]


def test_the_image_serves_the_port_that_it_checks() -> None:
    [port], [health] = IMAGE.all("EXPOSE"), IMAGE.all("HEALTHCHECK")
    config = load_config(DEPLOY / "config.yaml")
    assert str(config.port) == port
    assert f"http://127.0.0.1:{port}/healthz" in health
    assert str(config.data) == "/var/lib/dragoman"
    [command] = IMAGE.all("CMD")
    assert yaml.safe_load(command) == ["serve", "--config", "/etc/dragoman/config.yaml"]
    assert any(shlex.split(rest)[-1] == "/etc/dragoman/config.yaml" for rest in IMAGE.all("COPY"))


@pytest.mark.parametrize("name", ["gateway-1", "gateway-2", "gateway-3"])
def test_a_server_of_compose_can_write_its_data_alone(name: str) -> None:
    server = COMPOSE["services"][name]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert server["volumes"] == ["files:/var/lib/dragoman"]
    assert (DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    limits = load_config(DEPLOY / "config.yaml").limits
    assert int(server["stop_grace_period"].removesuffix("s")) > limits.drain_seconds


def test_compose_and_its_settings_and_nginx_agree() -> None:
    config, nginx = load_config(DEPLOY / "config.yaml"), (DEPLOY / "nginx.conf").read_text()
    [network] = COMPOSE["networks"]["default"]["ipam"]["config"]
    assert config.trusted_proxies == (network["subnet"],)
    servers = [name for name in COMPOSE["services"] if name.startswith("gateway")]
    assert len(servers) == 3
    for name in servers:
        assert f"server {name}:{config.port} " in nginx
    assert COMPOSE["services"]["nginx"]["depends_on"] == servers
    files = [volume.split(":")[:2] for volume in COMPOSE["services"]["nginx"]["volumes"]]
    assert ["./nginx.conf", "/etc/nginx/nginx.conf"] in files
    [tls] = [inside for outside, inside in files if outside == "./tls"]
    assert f"{tls}/server.crt" in nginx


def test_redis_of_compose_forgets_nothing() -> None:
    words = COMPOSE["services"]["redis"]["command"]
    options = dict(zip(words[1::2], words[2::2], strict=True))
    assert options["--appendonly"] == "yes"
    assert options["--maxmemory-policy"] == "noeviction"
    assert COMPOSE["x-gateway"]["environment"]["DRAGOMAN_LOG"] == "${DRAGOMAN_LOG:-redis://redis:6379/0}"
