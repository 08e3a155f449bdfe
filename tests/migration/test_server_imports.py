"""What an import into a running server is told to do, and what stops it."""

import pytest

from gateway.errors import BackendFailed, Invalid
from gateway.migration import ImportLine, ImportOrder, NoResources, NoStore, ResourceLine, ServerImports
from gateway.ports import RemoteAddress, Timeouts
from tests.support.dialects.zenflux.old_server import OldConversation, serve_old


async def run(url: str, dialect: str = "zenflux", agent: str | None = None) -> dict[str, int]:
    async def report(line: ImportLine | ResourceLine) -> None:
        """Nobody reads it."""

    imports = ServerImports(NoStore(), NoResources(), lambda: {"demo"}, lambda: "demo", lambda: 5000.0)
    order = ImportOrder(
        dialect=dialect, address=RemoteAddress(url=url, patience=Timeouts(attempts=1)), agent=agent)
    return dict((await imports.run(order, report)).counts)


async def test_an_empty_server_has_nothing_to_import() -> None:
    async with serve_old() as old:
        assert await run(old.url) == {}


@pytest.mark.parametrize(("dialect", "agent", "reason"), [
    ("nova", None, "sessions of 'nova' servers cannot be read"),
    ("zenflux", "nobody", "there is no agent 'nobody'; there are: demo"),
])
async def test_what_is_not_there_is_named(dialect: str, agent: str | None, reason: str) -> None:
    async with serve_old(OldConversation("conv_1")) as old:
        with pytest.raises(Invalid, match=reason):
            await run(old.url, dialect, agent)
        assert not old.asked


async def test_a_list_that_cannot_be_read_stops_the_import() -> None:
    async with serve_old() as old:
        url = old.url
    with pytest.raises(BackendFailed, match="cannot be reached"):
        await run(url)
