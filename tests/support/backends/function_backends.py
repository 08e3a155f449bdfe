"""Functions as agents, for tests: made into a backend as they are, or written to a file and served."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

import gateway.model as m
from gateway.backends.python.agent_function import AgentFunction, PythonSettings, load_function
from gateway.backends.python.backend import PythonBackend
from gateway.backends.user_modules import UserModule
from gateway.engine.session import Session
from tests.support.engine.engine_fixture import EngineFixture, lawful
from tests.support.gateway_server import until

_numbers = count(1)
PATIENCE = 0.2
"""Seconds after which the journal is told of an agent that does not let go; a test may not wait for the real ones."""


def function_backend(
    function: Callable[..., Any], *, options: dict[str, Any] | None = None, **settings: Any
) -> PythonBackend:
    """A backend of a function of the test itself."""
    source = UserModule(sys.modules[function.__module__], {Path(function.__code__.co_filename): ()})
    return PythonBackend(AgentFunction(f"test:{function.__name__}", source, function, options or {}), **settings)


def write_module(folder: Path, code: str) -> str:
    """The code as a module in the folder, under a name that no other test has."""
    name = f"agent_of_test_{next(_numbers)}"
    (folder / f"{name}.py").write_text(code)
    return name


def loaded(folder: Path, word: str, **settings: Any) -> AgentFunction:
    return load_function(PythonSettings(agent=word, **settings), folder)


class FunctionTurns:
    """A turn of a function in a real engine, and what the journal was told meanwhile."""

    def __init__(self, backend: PythonBackend, *, captured: bool = True, **limits: float) -> None:
        self.stage, self.told = EngineFixture(backend.run, **limits), list[dict[str, Any]]()
        self.session: Session
        self._rest, self._captured = ExitStack(), captured

    async def __aenter__(self) -> "FunctionTurns":
        if self._captured:
            self.told = self._rest.enter_context(capture_logs())
        self.session = await self.stage.session()
        self.session.submit([m.SendMessage(content="go")])
        return self

    async def __aexit__(self, *error: object) -> None:
        self._rest.close()

    async def end(self) -> m.TurnEnded:
        """How it ended, after a lawful stream."""
        await asyncio.wait_for(until(lambda: self.session.run is None), 60)
        records = await self.records()
        assert lawful(records).turn is m.TurnPhase.IDLE
        event = records[-1].event
        assert isinstance(event, m.TurnEnded)
        return event

    async def records(self) -> list[m.Record]:
        return await self.stage.records(self.session)

    def of(self, event: str) -> list[dict[str, Any]]:
        """What the journal was told under these words."""
        return [entry for entry in self.told if entry["event"] == event]
