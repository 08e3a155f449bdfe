"""An array that is encoded already, in pieces."""

import pytest

from gateway.json_values import EncodedArray


@pytest.mark.parametrize(("values", "whole"), [([], b"[]"), ([b"1"], b"[1]"), ([b"1", b'{"a":2}'], b'[1,{"a":2}]')])
def test_the_pieces_are_the_array(values: list[bytes], whole: bytes) -> None:
    found = EncodedArray(values)
    assert (len(found), b"".join(found.pieces())) == (len(values), whole)
