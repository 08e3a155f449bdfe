"""The page about backends names every setting of the rooms `acp` and `agui`."""

from pathlib import Path

import pytest

from gateway.backends.kinds import kind_of, known_kinds

PAGE = (Path(__file__).parents[2] / "docs" / "backends.md").read_text()


@pytest.mark.parametrize("name", ["acp", "agui"])
def test_every_setting_is_on_the_page(name: str) -> None:
    assert name in known_kinds()
    section, kind = PAGE.partition(f"\n## `{name}`\n")[2].partition("\n## ")[0], kind_of(name, Path())
    assert kind.card.name == name
    assert kind.settings is not None
    assert [field for field in kind.settings.model_fields if f"`{field}`" not in section] == []
