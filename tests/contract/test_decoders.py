"""Every decoder of a protocol of a server has the methods of `gateway.ports.Decoder`, and no base class."""

import inspect
from typing import Any

import pytest

from gateway.backends.acp.decoder import AcpDecoder
from gateway.backends.agui.decoder import AguiDecoder
from gateway.ports import Decoder
from tests.support.dialect_tables import DIALECTS, dialect

METHODS = [name for name, value in vars(Decoder).items() if not name.startswith("_")]
DECODERS: list[Any] = [*(dialect(name).decoder for name in DIALECTS), AguiDecoder, AcpDecoder]


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.__module__)
def test_a_decoder_has_all_methods_itself(decoder: type) -> None:
    assert sorted(METHODS) == ["configure", "end", "feed", "on_answer", "on_reconnect", "paused"]
    assert decoder.__bases__ == (object,)
    for name in METHODS:
        own, wanted = vars(decoder)[name], vars(Decoder)[name]
        assert type(own) is type(wanted), name
        if inspect.isfunction(own):
            assert _required(own) == _required(wanted), name


def _required(method: Any) -> list[str]:
    return [one.name for one in inspect.signature(method).parameters.values() if one.default is one.empty]
