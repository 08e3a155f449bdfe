"""Every decoder of a server's protocol has the methods of `gateway.ports.Decoder`, and no base class but that port."""

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
def test_a_decoder_has_all_methods_itself_or_those_of_the_port(decoder: type) -> None:
    assert sorted(METHODS) == ["configure", "end", "feed", "on_answer", "on_reconnect", "paused"]
    assert decoder.__bases__ in ((object,), (Decoder,))
    for name in METHODS:
        own, wanted = inspect.getattr_static(decoder, name), vars(Decoder)[name]
        assert type(own) is type(wanted), name
        if inspect.isfunction(own):
            assert _required(own) == _required(wanted), name


def _required(method: Any) -> list[str]:
    return [one.name for one in inspect.signature(method).parameters.values() if one.default is one.empty]
