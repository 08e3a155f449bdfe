"""What servers say and decoders read is what it was, byte for byte, but for ids, times and durations.

If a change is meant, `pytest tests/golden --record` writes the transcripts anew; look at the difference with git.
"""

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.golden.recorder import TALKS, golden

FOLDER = Path(__file__).parent
SHOWN = 40


@pytest.mark.parametrize("dialect", TALKS)
async def test_every_word_is_what_it_was(dialect: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = await golden(tmp_path, dialect)
    if request.config.getoption("record"):
        for name, text in found.items():
            (FOLDER / name).write_text(text)
    for name, text in found.items():
        was = (FOLDER / name).read_text().splitlines()
        differences = [line[:400] for line in unified_diff(was, text.splitlines(), name, "now", lineterm="")]
        assert not differences, "\n".join(differences[:SHOWN])
