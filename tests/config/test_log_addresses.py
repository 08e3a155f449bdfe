"""Where sessions are kept on a server: an address that can be one, told without its password if it cannot."""

from pathlib import Path

import pytest

from gateway.config import load_config
from gateway.yaml_positions import Problems
from tests.support.extras import packages_of

PLAIN = "dialects: {aap: {}}\nagents: {demo: {backend: demo}}\n"


def load(folder: Path, log: str) -> str:
    file = folder / "config.yaml"
    file.write_text(f"{PLAIN}log: '{log}'\n")
    return load_config(file).log


@pytest.mark.parametrize("log", [
    "redis://localhost", "redis://ann:hush@host:6379/3?prefix=mine", "rediss://host/0", "unix:///run/redis.sock?db=1",
    "redis+sentinel://:hush@h1,h2:26380,h3/main?prefix=mine&db=2&wait=0", "rediss+sentinel://[::1]:26379/main",
    "redis+cluster://ann:hush@h1:7000,h2?prefix=mine&wait=2&partitions=128", "rediss+cluster://[::1]:7000",
])
def test_an_address_is_taken(tmp_path: Path, log: str) -> None:
    assert load(tmp_path, log) == log


@pytest.mark.parametrize("log", ["redis://", "redis://:hush@:6379", "redis://:hush@host:port/0", "unix://",
    "redis+sentinel://:hush@h1,h2", "redis+sentinel://:hush@h1,,h3/main", "redis+sentinel://:hush@h1:port/main",
    "redis+cluster://:hush@h1/0", "redis+cluster://:hush@h1,:6379",
])
def test_what_is_no_address_is_told_without_its_password(tmp_path: Path, log: str) -> None:
    with pytest.raises(Problems) as told:
        load(tmp_path, log)
    words = str(told.value)
    assert "this is not an address of a" in words and "write it as" in words
    assert "hush" not in words


@pytest.mark.parametrize("log", ["postgres://ann:hush@host/db", "radis://:hush@host"])
def test_a_server_of_another_kind_is_not_known(tmp_path: Path, log: str) -> None:
    with pytest.raises(Problems) as told:
        load(tmp_path, log)
    assert f"unknown log '{log.partition(':')[0]}'" in str(told.value)
    assert "hush" not in str(told.value)


def test_what_is_not_installed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.config.checks.find_spec", lambda name: None)
    with pytest.raises(Problems) as told:
        load(tmp_path, "redis://host")
    assert f"pip install {packages_of('redis')}, or Dragoman with its extra 'redis'" in str(told.value)


@pytest.mark.parametrize(("log", "told"), [
    ("rediss://:hush@host/0?ssl_ca_cert=ca.pem", "has no 'ssl_ca_cert'; did you mean 'ssl_ca_certs'?"),
    ("rediss://:hush@host/0?ssl_ca_certs=nowhere.pem",
     "ssl_ca_certs: there is no file 'nowhere.pem'; the path starts at the folder of the config file"),
    ("redis://:hush@host/0?ssl_ca_certs=ca.pem", "an address of a redis:// server has no 'ssl_ca_certs'"),
    ("redis://:hush@host/zero", "the database of a redis:// server is a number"),
    ("unix://:hush@/run/redis.sock?db=zero", "the database of a unix:// server is a number"),
    ("redis+sentinel://:hush@h1,h2/main?wait=some", "wait is the number of replicas that must have a change"),
    ("redis+sentinel://:hush@h1/main?ssl_ca_certs=ca.pem", "redis+sentinel:// server has no 'ssl_ca_certs'"),
    ("redis+cluster://:hush@h1,h2,h3?partitions=48", "partitions is a power of two, 1024 at most"),
    ("redis+cluster://:hush@h1?prefix={mine}", "the prefix of keys in a Redis Cluster has no braces"),
    ("redis+cluster://:hush@h1?db=1", "redis+cluster:// server has no 'db'"),
    ("unix://redis.sock", "write it as unix:///PATH?db=NUMBER, with three slashes"),
])
def test_what_an_address_cannot_say_is_told_at_its_line(tmp_path: Path, log: str, told: str) -> None:
    (tmp_path / "ca.pem").write_text("")
    with pytest.raises(Problems) as caught:
        load(tmp_path, log)
    words = str(caught.value)
    assert f"{tmp_path}/config.yaml:3:6: " in words and told in words
    assert "hush" not in words


def test_files_of_an_address_are_looked_for_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    log = "rediss://host/0?ssl_ca_certs=ca.pem&ssl_check_hostname=no&prefix=mine"
    assert load(tmp_path, log) == log
