"""Our own server before every examiner there is: no MUST and no SHOULD fails, and nothing is left untested.

Every second requirement here; all of them, here and in processes of their own: `make prove ARGS="--only conform"`.
"""

from pathlib import Path

import pytest

from tests.support.conformance.own_server import examine_ourselves
from tests.support.dialect_parts import each

EVERY_SECOND = slice(None, None, 2)


@pytest.mark.parametrize("name", each("examination"))
async def test_we_conform(name: str, tmp_path: Path) -> None:
    await examine_ourselves(name, tmp_path, EVERY_SECOND)
