"""An agent that was replaced is closed when its last turn is over, and not before."""

from pathlib import Path

import gateway.model as m
from gateway.client import BackendEvents
from gateway.composition import load_components
from gateway.config import load_config
from gateway.ports import Turn
from tests.support.gateway_server import serving, until


class Noted:
    """An agent that notes when it is closed."""

    def __init__(self, inner) -> None:  # type: ignore[no-untyped-def]
        self.inner, self.closed = inner, 0

    def run(self, turn: Turn) -> BackendEvents:
        return self.inner.run(turn)  # type: ignore[no-any-return]

    async def close(self) -> None:
        self.closed += 1
        await self.inner.close()


async def test_it_is_closed_once_and_after_its_turn(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        gateway = served.gateway
        old = Noted(gateway.components.backends["demo"])
        gateway.components.backends["demo"] = old  # type: ignore[index]
        view = await gateway.sessions.create("ann", "demo")
        await gateway.sessions.submit("ann", view.session_id, [m.SendMessage(content="/slow 8")])
        file = tmp_path / "config.yaml"
        file.write_text(file.read_text().replace("backend: demo", "backend: demo\n    settings: {delay: 0.001}"))
        gateway.replace_components(load_components(load_config(file), gateway.components))
        assert gateway.components.backends["demo"] is not old
        await until(lambda: view.status is m.SessionStatus.IDLE or old.closed)
        assert (view.status, old.closed) == (m.SessionStatus.IDLE, 0)
        await until(lambda: old.closed)
    assert old.closed == 1


async def test_one_that_is_left_is_closed_with_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        gateway = served.gateway
        old = Noted(gateway.components.backends["demo"])
        gateway.components.backends["demo"] = old  # type: ignore[index]
        view = await gateway.sessions.create("ann", "demo")
        await gateway.sessions.submit("ann", view.session_id, [m.SendMessage(content="/continue")])
        file = tmp_path / "config.yaml"
        file.write_text(file.read_text().replace("backend: demo", "backend: demo\n    settings: {delay: 0.001}"))
        gateway.replace_components(load_components(load_config(file), gateway.components))
        await until(lambda: view.status is m.SessionStatus.SUSPENDED)
    assert old.closed == 1
