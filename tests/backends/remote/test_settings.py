"""What config.yaml may say of a remote agent, and what it is told when that is wrong."""

from pathlib import Path

import pytest

from gateway.backends.remote import RemoteSettings, find_dialect
from gateway.composition import load_components
from gateway.config import load_config
from gateway.yaml_positions import Problems
from tests.support.dialect_tables import DIALECTS


def test_an_address_with_its_key_and_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", "sk-far-away")
    settings = RemoteSettings(dialect="cas", url="https://far.example/api/", key="$FAR_KEY", idle_seconds=5)  # type: ignore[arg-type]
    address = settings.address
    assert (address.url, address.key, address.agent) == ("https://far.example/api", "sk-far-away", None)
    assert (address.patience.idle, address.patience.connect) == (5, 10)
    assert "sk-far-away" not in repr(settings)


@pytest.mark.parametrize(("settings", "told"), [
    ("{dialect: klingon, url: 'http://x'}", f"dialect 'klingon' has no client role; available: {', '.join(DIALECTS)}"),
    ("{dialect: aap, url: 'ftp://x'}", "an address begins with http:// or https://"),
    ("{dialect: aap, url: 'http://x', kee: y}", "there is no setting 'kee'; did you mean 'key'?"),
    ("{dialect: aap, url: 'http://x', key: $NOBODY_SET_THIS}", "the environment has no variable NOBODY_SET_THIS"),
    ("{dialect: aap}", "'url' is missing"),
])
def test_mistakes_are_told_with_their_places(tmp_path: Path, settings: str, told: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"dialects: {{aap: }}\nagents:\n  far:\n    backend: remote\n    settings: {settings}\n")
    with pytest.raises(Problems) as caught:
        load_components(load_config(file))
    assert f"{file.name}:5:" in str(caught.value) and told in str(caught.value)


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects_are_found_by_name(name: str) -> None:
    assert find_dialect(name).name == name
