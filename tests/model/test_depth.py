"""What is nested so deep that it could be read but not be written again is seen before it is taken in."""

import orjson
import pytest

from gateway.model import is_too_deep


@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_room_is_left_around_what_is_taken_in(opening: str, closing: str) -> None:
    def judged(levels: int) -> bool:
        written = (opening * levels + "1" + closing * levels).encode()
        return is_too_deep(orjson.loads(written), written)

    assert not any(map(judged, (0, 1, 99, 100, 101, 150)))
    assert all(map(judged, (200, 254, 500, 1000)))


def test_what_is_wide_is_not_deep() -> None:
    wide = [{"list": [[]]} for _ in range(1000)]
    assert not is_too_deep(wide, orjson.dumps(wide))
