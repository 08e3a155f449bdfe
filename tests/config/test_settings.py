"""Every setting is documented in config.yaml, and a config is checked whole."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from gateway.config import Config

TEXT = (Path(__file__).parents[2] / "config.yaml").read_text()


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models(inner)


def settings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        yield model.__name__, name
        for inner in models(field.annotation):
            yield from settings(inner)


@pytest.mark.parametrize(("model", "name"), sorted(set(settings(Config))))
def test_a_setting_is_documented(model: str, name: str) -> None:
    assert re.search(rf"^[# -]*{name}:", TEXT, re.MULTILINE), f"config.yaml does not show {model}.{name}"


@pytest.mark.parametrize(("group", "name"), [(g, n) for g in ("limits", "logging")
                                              for n in type(Config.model_fields[g].default).model_fields])
def test_a_limit_says_what_it_is_for(group: str, name: str) -> None:
    assert re.search(rf"^  {name}: \S+ +# \w+", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", ["host", "port", "log", "auth", "on_disconnect"])
def test_the_file_shows_the_defaults(name: str) -> None:
    assert re.search(rf"^{name}: {Config.model_fields[name].default} ", TEXT, re.MULTILINE)


def test_the_file_shows_the_default_limits() -> None:
    limits = Config().limits.model_dump()
    for name, value in limits.pop("per_key").items():
        assert re.search(rf"^  #   {name}: {int(value)} ", TEXT, re.MULTILINE)
    for name, value in limits.items():
        assert re.search(rf"^  {name}: {int(value)} ", TEXT, re.MULTILINE)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().port = 1  # type: ignore[misc]
