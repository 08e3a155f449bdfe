"""Where sessions are kept on a server: an address that can be one, told without its password if it cannot."""

from pathlib import Path

import pytest

from gateway.config import load_config
from gateway.marks import Problems

PLAIN = "dialects: {aap: {}}\nagents: {demo: {backend: demo}}\n"


def load(folder: Path, log: str) -> str:
    file = folder / "config.yaml"
    file.write_text(f"{PLAIN}log: '{log}'\n")
    return load_config(file).log


@pytest.mark.parametrize("log", [
    "redis://localhost", "redis://ann:hush@host:6379/3?prefix=mine", "rediss://host/0", "unix:///run/redis.sock?db=1",
])
def test_an_address_is_taken(tmp_path: Path, log: str) -> None:
    assert load(tmp_path, log) == log


@pytest.mark.parametrize("log", ["redis://", "redis://:hush@:6379", "redis://:hush@host:port/0", "unix://"])
def test_what_is_no_address_is_told_without_its_password(tmp_path: Path, log: str) -> None:
    with pytest.raises(Problems) as told:
        load(tmp_path, log)
    words = str(told.value)
    assert "that is no address of a" in words and "redis://HOST:PORT/DB" in words
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
    assert ".venv/bin/pip install -e '.[redis]'" in str(told.value)
