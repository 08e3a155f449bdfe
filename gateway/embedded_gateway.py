"""The gateway inside a program of yours: a part of an aiohttp application, or a server on a port of its own.

    app.add_subapp("/agents", Dragoman("config.yaml").application())

    async with served(my_function) as url: ...
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from aiohttp import web

from adapters import known_dialects
from gateway.backends import MadeBackend
from gateway.config import Config, load_config, make_config
from gateway.errors import Invalid
from gateway.logging import log_to_host
from gateway.ports import Backend
from gateway.private_files import make_private_folder

from .app import Gateway
from .composition import load_components
from .reload import log_setting_warnings
from .server import drain

Agent = Callable[..., object] | Backend | Mapping[str, object]
"""A function as `backend: python` runs it, an object with `run` and `close`, or settings as in config.yaml."""
ARGUMENT = "argument "
"""How messages name a setting that is an argument of the program."""
SHUTDOWN_SECONDS = 2.0


class Dragoman:
    """A gateway with the settings of a file, or of the arguments; it can be served once.

    `agents` are functions, backends or settings, by name; they are served beside those of the file. The other arguments
    are settings as in config.yaml, and replace those of the file. Without a file, all dialects are served, and what is
    stored is lost at the end: name a `log` and a `data` folder to keep it. Raises `Problems`.
    """

    def __init__(
        self, config: Path | str | None = None, *, agents: Mapping[str, Agent] | None = None, **settings: object,
    ) -> None:
        given = agents or {}
        made = {name: _made_backend(name, agent) for name, agent in given.items() if not isinstance(agent, Mapping)}
        rows = {name: agent if isinstance(agent, Mapping) else {"backend": "python"} for name, agent in given.items()}
        self._temporary = TemporaryDirectory(prefix="dragoman-") if config is None and "data" not in settings else None
        values = {**settings, **({"agents": rows} if rows else {})}
        read = self._settings_of_arguments(values) if config is None else load_config(config, values, ARGUMENT)
        self._gateway = Gateway(load_components(read, given=made))
        self._is_taken = False

    def application(self) -> web.Application:
        """The application: serve it, or add it to another one with `add_subapp`."""
        if self._is_taken:
            raise RuntimeError("a Dragoman is served once; make another one")
        self._is_taken = True
        app = self._gateway.web
        app.cleanup_ctx.insert(0, self._open)
        app.on_startup.append(self._mark_ready)
        app.on_shutdown.append(self._drain)
        return app

    @asynccontextmanager
    async def listening(self, host: str | None = None, port: int | None = None) -> AsyncIterator[str]:
        """Serve on an address of its own until the block ends; the URL. Port 0 takes a free one."""
        self.application()
        config = self._gateway.components.config
        runner = self._gateway.runner(shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            at = config.host if host is None else host
            await web.TCPSite(runner, at, config.port if port is None else port).start()
            yield f"http://{f'[{at}]' if ':' in at else at}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    def _settings_of_arguments(self, values: Mapping[str, object]) -> Config:
        folder = {"data": self._temporary.name} if self._temporary else {}
        return make_config({"dialects": {name: {} for name in known_dialects()}, "log": "memory", **folder, **values})

    async def _open(self, app: web.Application) -> AsyncIterator[None]:
        log_to_host()
        config = self._gateway.components.config
        make_private_folder(config.data)
        log_setting_warnings(config)
        yield
        await self._gateway.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    async def _mark_ready(self, app: web.Application) -> None:
        self._gateway.readiness.mark_ready()

    async def _drain(self, app: web.Application) -> None:
        await drain(self._gateway)


@asynccontextmanager
async def served(agent: Agent, **settings: object) -> AsyncIterator[str]:
    """Serve one agent in all dialects on a free port until the block ends; the URL. For scripts and tests."""
    async with Dragoman(None, agents={"agent": agent}, **settings).listening("127.0.0.1", 0) as url:
        yield url


def _made_backend(name: str, agent: Callable[..., object] | Backend) -> MadeBackend:
    if isinstance(agent, Backend):
        return MadeBackend(agent, getattr(agent, "card", None))
    if not callable(agent):
        raise Invalid(f"the agent '{name}' is {type(agent).__name__}: give a function, or an object with run and close")
    from gateway.backends.python import made_from_function

    return made_from_function(agent)
