"""A decoder's methods say by their cues and parameters what is read of a frame."""

from typing import Any

from gateway.client import cue_handlers, decodes, read_names


class Decoder:
    def __init__(self) -> None:
        self.said: list[Any] = []

    @decodes("block.delta.text", "block.delta.thinking")
    def delta(self, cue: str, /, index: int, text: str = "") -> None:
        self.said.append((cue, index, text))

    @decodes("turn.ended")
    def ended(self) -> None:
        self.said.append("over")

    def helper(self, other: int) -> None:
        raise AssertionError("it decodes nothing")


def test_a_method_decodes_its_cues() -> None:
    handlers, decoder = cue_handlers(Decoder), Decoder()
    assert handlers.keys() == {"block.delta.text", "block.delta.thinking", "turn.ended"}
    handlers["block.delta.thinking"](decoder, "a cue", index=2, text="hm")
    handlers["turn.ended"](decoder)
    assert decoder.said == [("a cue", 2, "hm"), "over"]


def test_the_parameters_are_what_is_read() -> None:
    """What goes before the slash is given by place, and is nothing of the frame."""
    names = read_names(cue_handlers(Decoder))
    assert names == {"block.delta.text": ("index", "text"), "block.delta.thinking": ("index", "text"), "turn.ended": ()}
