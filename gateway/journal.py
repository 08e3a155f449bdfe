"""What the server says about itself: JSON lines for machines, colours for people, secrets for nobody."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import msgspec
import orjson
import structlog

from gateway.model import Record, with_secrets

MASK = "***"
HIDDEN = frozenset((
    "secrets", "authorization", "proxy-authorization", "cookie", "set-cookie",
    "token", "key", "api_key", "x-api-key", "password",
))
"""Under these names nothing is ever written."""


def configure(format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up the journal: `json`, `console`, or `auto` for console on a terminal and JSON elsewhere.

    Loggers are not cached, so that a reload can change the level; what libraries log goes the same way.
    """
    stream = stream or sys.stderr
    console = format == "console" or (format == "auto" and stream.isatty())
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide,
    ]
    ending = _for_people(stream) if console else _for_machines()
    structlog.configure(
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *names: Lines(stream, *names),
        cache_logger_on_first_use=False,
    )
    _take_in_libraries(stream, shared, ending)


def get(name: str = "dragoman") -> Any:
    """A logger: `log = journal.get()`, then `log.info("what happened", session=…)`."""
    return structlog.get_logger(name)


class Lines(structlog.WriteLogger):
    """Writes to the stream it was given, and knows its name."""

    def __init__(self, stream: TextIO, name: str = "dragoman") -> None:
        super().__init__(stream)
        self.name = name


def _for_people(stream: TextIO) -> list[structlog.typing.Processor]:
    # Not rich's tracebacks: they show local variables, and among those are secrets.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)]


def _for_machines() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_json)]


def _json(value: Any, **options: Any) -> str:
    return orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


def _take_in_libraries(
    stream: TextIO, shared: list[structlog.typing.Processor], ending: list[structlog.typing.Processor],
) -> None:
    """aiohttp and asyncio use the standard library's logging; from them only warnings and worse are of interest."""
    handler = logging.StreamHandler(stream)
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[strip, *ending]))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


# -- what must not be seen --------------------------------------------------------------------------------------------

def hide(logger: Any, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask whatever stands under a hidden name, at any depth."""
    return {name: _hidden(name, value) for name, value in entry.items()}


def _hidden(name: Any, value: Any) -> Any:
    if isinstance(name, str) and name.lower() in HIDDEN:
        return MASK
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {key: _hidden(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(None, inner) for inner in value]
    return value


def masked(record: Record) -> Record:
    """The same record, every secret in it masked."""
    return with_secrets(record, lambda values: dict.fromkeys(values, MASK))
