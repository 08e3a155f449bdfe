"""The rest of a turn: what was had is left out, and nothing else."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gateway.http import ResumedSubscription
from gateway.ports import Chunk, Frame


class Given:
    """A subscription that hands out what it was given, then is over."""

    def __init__(self, batches: list[list[Chunk]]) -> None:
        self.batches = list(batches)
        self.cut_at: int | None = None
        self.is_draining = False
        self.closed = False

    async def chunks(self) -> Sequence[Chunk]:
        return self.batches.pop(0) if self.batches else ()

    def cut(self) -> None:
        self.cut_at = 3

    def close(self) -> None:
        self.closed = True


FRAMES = st.lists(st.lists(st.lists(st.binary(max_size=3), max_size=3), min_size=1, max_size=4), max_size=5)


@given(FRAMES, st.integers(0, 40))
async def test_the_frames_after_those_that_were_had(batches: list[list[list[bytes]]], had: int) -> None:
    told = [[Chunk(n, tuple(map(Frame, frames)), not frames) for n, frames in enumerate(batch)] for batch in batches]
    rest, heard, yields = ResumedSubscription(Given(told), had), list[bytes](), 0
    while chunks := await rest.chunks():
        heard += [frame.body for chunk in chunks for frame in chunk.frames]
        yields += sum(chunk.yields for chunk in chunks)
    assert heard == [frame for batch in batches for frames in batch for frame in frames][had:]
    assert yields == sum(not frames for batch in batches for frames in batch), "where a turn yields is never left out"


async def test_it_is_the_subscription_in_all_else() -> None:
    inner = Given([])
    rest = ResumedSubscription(inner, 1)
    assert (rest.cut_at, rest.is_draining) == (None, False)
    inner.is_draining = True
    rest.cut()
    rest.close()
    assert (rest.cut_at, rest.is_draining, inner.closed) == (3, True, True)
