"""Who may reach the server: what is no name, origin or network is told with its place, and old settings are moved."""

from pathlib import Path

import pytest

from gateway.config import Config, load_config
from gateway.yaml_positions import Problems

GOOD = "agents: {demo: {backend: demo}}\n"


def loaded(folder: Path, text: str) -> Config:
    (folder / "config.yaml").write_text(GOOD + text)
    return load_config(folder / "config.yaml")


@pytest.mark.parametrize(("setting", "words"), [
    ("hosts: ['https://a.example']", "config.yaml:3:9: hosts.0: must be a name"),
    ("hosts: [a.example, 'b.example:80']", "config.yaml:3:20: hosts.1: must be a name"),
    ("hosts: ['*example.com']", "hosts.0: must be a name"),
    ("origins: [app.example]", "config.yaml:3:11: origins.0: must be an origin without a path"),
    ("origins: ['https://a.example/path']", "origins.0: must be an origin"),
    ("trusted_proxies: [nginx]", "config.yaml:3:19: trusted_proxies.0: must be an IP address or a network"),
])
def test_a_mistake_is_told_with_its_place(tmp_path: Path, setting: str, words: str) -> None:
    with pytest.raises(Problems) as found:
        loaded(tmp_path, f"dialects: {{aap: }}\n{setting}\n")
    assert words in str(found.value)


def test_what_is_right_is_taken(tmp_path: Path) -> None:
    config = loaded(tmp_path, "dialects: {aap: }\nhosts: [a.example, '*.b.example', 10.0.0.1, '[::1]', '*']\n"
                    "origins: ['https://a.example:8443', 'tauri://localhost', loopback, '*']\n"
                    "trusted_proxies: [10.0.0.1, 10.0.0.0/8, 'fd00::/8']\n")
    assert (len(config.hosts), len(config.origins or ()), len(config.trusted_proxies)) == (5, 4, 3)


@pytest.mark.parametrize(("rest", "origins", "advice"), [
    ("dialects: {zenflux: {cors: true}}\n", ("loopback", "*"), 'write `origins: ["*"]` beside `host:`'),
    ("dialects: {blade: {origins: ['https://a.example']}}\n", ("loopback", "https://a.example"), "https://a.example"),
    ("dialects: {zenflux: {cors: true}}\norigins: ['https://b.example']\n", ("https://b.example", "*"), "remove it"),
    ("dialects: {zenflux: {cors: true}}\nhost: 0.0.0.0\nauth: keys\n", ("*",), "remove it"),
    ("dialects: {aap: {cors: false}}\n", None, "remove it"),
])
def test_old_settings_are_moved_with_a_warning(
    tmp_path: Path, rest: str, origins: tuple[str, ...] | None, advice: str,
) -> None:
    config = loaded(tmp_path, rest)
    assert config.origins == origins
    [warning] = config.warnings
    assert warning.startswith(f"{tmp_path}/config.yaml:2:")
    assert advice in warning


def test_a_list_in_a_variable_is_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOSTS", '["a.example"]')
    assert loaded(tmp_path, "dialects: {aap: }\n").hosts == ("a.example",)
    monkeypatch.setenv("DRAGOMAN_HOSTS", "a.example")
    with pytest.raises(Problems, match="variable DRAGOMAN_HOSTS: a list must be JSON"):
        loaded(tmp_path, "dialects: {aap: }\n")
