"""What servers say and decoders read is what it was, byte for byte, but for ids, times and durations.

If a change is meant, `pytest tests/golden --record` writes the transcripts anew; look at the difference with git.
"""

from difflib import unified_diff
from pathlib import Path

import pytest

import tests.golden
from tests.golden.recorder import golden
from tests.support.dialect_parts import each

SHOWN = 40


def transcript(name: str) -> Path:
    """The file of this name, wherever the path of this package leads; if there is none, where it would be."""
    places = [Path(folder) / name for folder in tests.golden.__path__]
    return next((place for place in places if place.is_file()), places[0])


@pytest.mark.parametrize("dialect", each("pair_client"))
async def test_every_word_is_what_it_was(dialect: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = await golden(tmp_path, dialect)
    if request.config.getoption("record"):
        for name, text in found.items():
            transcript(name).write_text(text)
    for name, text in found.items():
        was = transcript(name).read_text().splitlines()
        differences = [line[:400] for line in unified_diff(was, text.splitlines(), name, "now", lineterm="")]
        assert not differences, "\n".join(differences[:SHOWN])
