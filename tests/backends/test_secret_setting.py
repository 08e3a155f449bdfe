"""Keys are found where the settings point, and are not printed."""

import pytest
from pydantic import BaseModel, ValidationError

from gateway.backends.setting_types import SecretSetting


class Settings(BaseModel):
    key: SecretSetting


def test_a_key_is_taken_as_it_is_written_and_not_printed() -> None:
    settings = Settings(key="sk-plain")  # type: ignore[arg-type]
    assert settings.key.get_secret_value() == "sk-plain"
    assert "sk-plain" not in repr(settings)


@pytest.mark.parametrize("word", ["$DRAGOMAN_TEST_SECRET", "${DRAGOMAN_TEST_SECRET}"])
def test_a_dollar_names_a_variable_of_the_environment(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TEST_SECRET", "sk-hidden")
    assert Settings(key=word).key.get_secret_value() == "sk-hidden"  # type: ignore[arg-type]


def test_a_variable_that_is_not_there_is_told_by_name() -> None:
    with pytest.raises(ValidationError, match="the environment has no variable NOBODY_SET_THIS"):
        Settings(key="$NOBODY_SET_THIS")  # type: ignore[arg-type]
