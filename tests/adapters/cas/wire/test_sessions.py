"""CAS's settings: what config.yaml may say under the dialect's name."""

import pytest
from pydantic import ValidationError

from adapters.cas.wire.sessions import CasSettings


def test_the_seeds_form_is_the_default() -> None:
    settings = CasSettings()
    assert (settings.stream_start, settings.metadata, settings.heartbeat) == ("turn", "replace", "heartbeat")
    assert settings.body_bytes == 4 * 1024 * 1024


@pytest.mark.parametrize("given", [
    {"stream_start": "middle"}, {"metadata": "mix"}, {"heartbeat": "a\nb"}, {"body_bytes": 10}, {"unknown": 1},
])
def test_what_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CasSettings.model_validate(given)
