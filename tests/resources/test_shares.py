"""A link opens one session for reading, for a while, unless it is taken back."""

import pytest

from gateway.errors import Conflict, NotFound
from gateway.resources.shares import DEFAULT_TTL_SECONDS, Share, Shares
from gateway.storage.resources.memory import MemoryResources


class Desk:
    def __init__(self) -> None:
        self.now = 1000.0
        self.resources = MemoryResources(lambda: self.now)
        self.sharing = Shares(self.resources, lambda: self.now)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_a_link_opens_its_session(desk: Desk) -> None:
    token, share = await desk.sharing.share("ada", "s1", 60)
    assert await desk.sharing.open(token) == share == Share("ada", "s1", 1060.0)
    assert len(token) >= 43


async def test_it_expires(desk: Desk) -> None:
    token, _ = await desk.sharing.share("ada", "s1", 60)
    lasting, share = await desk.sharing.share("ada", "s1")
    assert share.expires_at == 1000 + DEFAULT_TTL_SECONDS
    desk.now += 60
    with pytest.raises(NotFound, match="expired"):
        await desk.sharing.open(token)
    await desk.sharing.open(lasting)


async def test_it_is_taken_back_by_those_whose_session_it_is(desk: Desk) -> None:
    token, _ = await desk.sharing.share("ada", "s1")
    for owner, session in (("bob", "s1"), ("ada", "s2")):
        with pytest.raises(NotFound):
            await desk.sharing.revoke(owner, session, token)
    await desk.sharing.revoke("ada", "s1", token)
    with pytest.raises(NotFound):
        await desk.sharing.open(token)


async def test_links_go_with_their_session(desk: Desk) -> None:
    gone, _ = await desk.sharing.share("ada", "s1")
    kept, _ = await desk.sharing.share("ada", "s2")
    await desk.sharing.forget("s1")
    with pytest.raises(NotFound):
        await desk.sharing.open(gone)
    await desk.sharing.open(kept)


@pytest.mark.parametrize("token", ["", "nonsense", "\udcff"])
async def test_nothing_else_opens(desk: Desk, token: str) -> None:
    with pytest.raises(NotFound):
        await desk.sharing.open(token)


async def test_the_word_is_not_kept(desk: Desk) -> None:
    token, _ = await desk.sharing.share("ada", "s1")
    (found,) = await desk.resources.list("share", "house:")
    assert token not in found.resource_id + repr(found.body)


async def test_a_session_has_so_many_links_and_old_ones_make_room(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.resources.shares.MAX_SHARES", 1)
    await desk.sharing.share("ada", "s1", 60)
    with pytest.raises(Conflict):
        await desk.sharing.share("ada", "s1")
    await desk.sharing.share("ada", "s2")
    desk.now += 60
    await desk.sharing.share("ada", "s1")
