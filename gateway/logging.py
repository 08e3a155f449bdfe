"""Writes the server log: JSON lines for machines, colours for people, and secrets masked.

A line is an event name and fields: `log.warning("turn_failed", session=…, turn=…, agent=…, reason=…)`. Events that any
client can cause go through a `SampledLogger`.
"""

import asyncio
import logging
import re
import sys
from collections import deque
from collections.abc import Callable, MutableMapping
from functools import cache, partial
from typing import Any, TextIO

import msgspec
import orjson

import gateway.model as m
from gateway.hidden_modules import hidden_modules

with hidden_modules("rich"):
    import structlog


class SampledLogger:
    """A logger that writes a few lines of each event per minute, and counts the others."""

    def __init__(self, log: Any, most: int = 5, seconds: float = 60.0) -> None:
        self._log = log
        self._most = most
        self._seconds = seconds
        self._seen: dict[str, tuple[float, int]] = {}

    def info(self, event: str, **fields: object) -> None:
        self._write(self._log.info, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(self._log.warning, event, fields)

    def _write(self, write: Callable[..., object], event: str, fields: dict[str, object]) -> None:
        """Write a line, or count it; the field `unwritten` has the number of lines left out in the minute before."""
        now = asyncio.get_running_loop().time()
        began, count = self._seen.get(event, (now, 0))
        if not 0 <= now - began < self._seconds:
            if count > self._most:
                fields["unwritten"] = count - self._most
            began, count = now, 0
        self._seen[event] = (began, count + 1)
        if count < self._most:
            write(event, **fields)


MASKED = "***"
SECRET_FIELDS = frozenset((
    "secrets", "authorization", "proxy-authorization", "cookie", "set-cookie",
    "token", "key", "api_key", "x-api-key", "password",
))
"""The values of fields with these names are masked."""
PLAIN_TYPES = frozenset((str, int, float, bool, type(None)))
"""Values of these types have no secrets inside."""
URL_QUERY = re.compile(r"\?[^\s\"'\\?]*(?:=|%3d)[^\s\"'\\]*", re.IGNORECASE)
"""The query of a URL: clients that cannot send headers put their key there, under a name that may be encoded."""
MALFORMED_REQUEST_MODULE = "aiohttp.http_exceptions"
"""The module of exceptions that quote a malformed request."""


def configure_logging(format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up the server log: `json`, `console`, or `auto` for console on a terminal and JSON elsewhere.

    Loggers are not cached, so that a reload can change the level. Lines of libraries are written in the same format.
    """
    stream = stream or sys.stderr
    console = format == "console" or (format == "auto" and stream.isatty())
    threshold = logging.getLevelNamesMapping()[level.upper()]
    ending: list[structlog.typing.Processor] = [
        *(_console_processors(stream) if console else _json_processors()),
        mask_queries,
    ]
    structlog.configure(
        processors=[*SHARED_PROCESSORS, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=cache(partial(StreamLogger, stream)),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(stream, SHARED_PROCESSORS, ending)


HOST_FIELDS = frozenset(("level", "logger", "timestamp"))
"""Fields of a line that the logging of Python has itself."""


def log_to_host() -> None:
    """Write to the logging of the program that the gateway is part of, unless the program has set up structlog itself.

    Loggers have the names of `get_logger`; the program decides what becomes of their lines.
    """
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level, *SHARED_PROCESSORS, structlog.processors.format_exc_info,
            _host_line, mask_queries,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _host_line(logger: object, method: str, entry: MutableMapping[str, Any]) -> str:
    """The event name and its fields, in one line; a traceback follows."""
    event, traceback = entry.pop("event"), entry.pop("exception", None)
    fields = (f"{name}={value}" for name, value in entry.items() if name not in HOST_FIELDS)
    line = " ".join([str(event), *fields])
    return f"{line}\n{traceback}" if traceback else line


def get_logger(name: str = "dragoman") -> Any:
    """Return a logger: `log = get_logger("dragoman.http")`, then `log.info("event_name", session=…)`."""
    return structlog.get_logger(name)


class StreamLogger(structlog.WriteLogger):
    """Writes lines to a stream, and has the name that structlog adds to each line."""

    def __init__(self, stream: TextIO, name: str = "dragoman") -> None:
        super().__init__(stream)
        self.name = name


def _console_processors(stream: TextIO) -> list[structlog.typing.Processor]:
    # Tracebacks of rich show local variables, and some of those are secrets.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)]


def _json_processors() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_json)]


def _json(value: object, **options: object) -> str:
    return orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()


def _configure_libraries(
    stream: TextIO, shared: list[structlog.typing.Processor], ending: list[structlog.typing.Processor],
) -> None:
    """Write warnings and errors of aiohttp and asyncio, which use the logging of the standard library."""
    handler = logging.StreamHandler(stream)
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[strip, *ending]))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


# -- secrets ----------------------------------------------------------------------------------------------------------
def mask_fields(logger: object, method: str, entry: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Mask the values of secret fields, at any depth."""
    for name, value in entry.items():
        if type(value) not in PLAIN_TYPES or name.lower() in SECRET_FIELDS:
            entry[name] = _mask_value(name, value)
    return entry


def _mask_value(name: object, value: object) -> object:
    if isinstance(name, str) and name.lower() in SECRET_FIELDS:
        return MASKED
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {key: _mask_value(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mask_value(None, inner) for inner in value]
    return value


def mask_malformed_request(
    logger: object, method: str, entry: MutableMapping[str, object],
) -> MutableMapping[str, object]:
    """Replace the exception of a malformed request by its class name: the exception would quote the client's key."""
    error = entry.get("exc_info")
    error = sys.exc_info()[1] if error is True else error[1] if isinstance(error, tuple) else error
    if type(error).__module__ == MALFORMED_REQUEST_MODULE:
        entry.pop("exc_info")
        entry["mistake"] = type(error).__name__
    return entry


def mask_queries(logger: object, method: str, line: Any) -> str:
    """Mask the query of every URL in a line."""
    return URL_QUERY.sub(f"?{MASKED}", line)


class LoggedWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A warning or an error of the server's log, with its fields as short texts."""

    at: str
    level: str
    event: str
    logger: str
    fields: dict[str, str]


RECENT_WARNINGS: deque[LoggedWarning] = deque(maxlen=200)
"""The last warnings and errors of this process, for admins who cannot read its log; secrets are masked."""
LONGEST_FIELD = 500


def keep_warning(logger: object, method: str, entry: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Keep a warning or an error; it comes here after its secrets were masked."""
    if (level := str(entry.get("level", ""))) in ("warning", "error", "critical"):
        shown = {name: URL_QUERY.sub(f"?{MASKED}", str(value))[:LONGEST_FIELD] for name, value in entry.items()
                 if name not in ("level", "event", "logger", "timestamp", "exc_info") and not name.startswith("_")}
        RECENT_WARNINGS.append(LoggedWarning(
            at=str(entry.get("timestamp", "")), level=level, logger=str(entry.get("logger", "")), fields=shown,
            event=URL_QUERY.sub(f"?{MASKED}", str(entry.get("event", "")))[:LONGEST_FIELD],
        ))
    return entry


def mask_secrets(record: m.Record) -> m.Record:
    """Return a copy of the record in which every secret is masked."""
    return m.with_secrets(record, lambda values: dict.fromkeys(values, MASKED))


SHARED_PROCESSORS: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    mask_fields,
    mask_malformed_request,
    keep_warning,
]
"""What every line goes through, whoever writes it."""
