"""How the blocks of an event stream can be written otherwise: as the format allows, and as it does not."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import orjson

from conformance.faults.proxy.streams import read_block

Framing = Callable[[bytes, bool], Sequence[bytes]]
"""A block, and whether it is the first, to the pieces it leaves in."""
WIDE = "ä中😀"


def _utf8(block: bytes, first: bool) -> Sequence[bytes]:
    """A comment of wide characters before the block; whatever is wide is cut between any two of its bytes."""
    whole = f": {WIDE}\n".encode() + block
    cuts = [0, *(place for place, byte in enumerate(whole) if byte & 0xC0 == 0x80), len(whole)]
    return [whole[start:end] for start, end in pairwise(cuts)]


def _lines(block: bytes, first: bool) -> Sequence[bytes]:
    """The JSON over several data lines, as a printer would."""
    message = read_block(block)
    if message is None or message.json is ...:
        return (block,)
    spread = orjson.dumps(message.json, option=orjson.OPT_INDENT_2).replace(b"\n", b"\ndata: ")
    return (_with_data(block, b"data: " + spread),)


def _torn(block: bytes, first: bool) -> Sequence[bytes]:
    """Half of the JSON."""
    message = read_block(block)
    if message is None or message.json is ...:
        return (block,)
    whole = orjson.dumps(message.json)
    return (_with_data(block, b"data: " + whole[: (len(whole) + 1) // 2]),)


def _bare(block: bytes, first: bool) -> Sequence[bytes]:
    """JSON without its field name."""
    return (block.replace(b"data: ", b"").replace(b"data:", b""),)


def _nameless(block: bytes, first: bool) -> Sequence[bytes]:
    """No event field."""
    return (b"".join(line for line in block.splitlines(keepends=True) if not line.startswith(b"event:")),)


def _with_data(block: bytes, data: bytes) -> bytes:
    others = [line for line in block.strip().splitlines() if not line.startswith(b"data:")]
    return b"\n".join([*others, data]) + b"\n\n"


FRAMINGS: dict[str, Framing] = {
    "crlf": lambda block, first: (block.replace(b"\n", b"\r\n"),),
    "cr": lambda block, first: (block.replace(b"\n", b"\r"),),
    "comment": lambda block, first: (b": still here\n\n", b":\n" + block),
    "tight": lambda block, first: (block.replace(b"data: ", b"data:").replace(b"event: ", b"event:"),),
    "bom": lambda block, first: (b"\xef\xbb\xbf" + block if first else block,),
    "hints": lambda block, first: (b"retry: 100\nunheard: of\n" + block,),
    "blank": lambda block, first: (block.removesuffix(b"\n"),),
    "utf8": _utf8,
    "lines": _lines,
    "torn": _torn,
    "bare": _bare,
    "nameless": _nameless,
}
ALLOWED = ("crlf", "cr", "comment", "tight", "bom", "hints", "utf8", "lines")
