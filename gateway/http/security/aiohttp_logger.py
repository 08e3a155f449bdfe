"""The log lines of aiohttp's server, as events of our log."""

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from gateway.logging import SampledLogger, get_logger

log = get_logger("dragoman.connections")


class AiohttpServerLogger:
    """The logger of the server of aiohttp: mistakes of clients are one line, bugs have a traceback."""

    def __init__(self, sampled: SampledLogger) -> None:
        self._sampled = sampled

    def debug(self, words: str, *args: object, exc_info: BaseException | None = None, **__: object) -> None:
        """Write malformed requests, which aiohttp logs at the level debug."""
        if exc_info is not None:
            self.exception(words, *args, exc_info=exc_info)

    def warning(self, words: str, *args: object, **__: object) -> None:
        log.warning("aiohttp_warning", text=words % args if args else words)

    def exception(self, words: str, *args: object, exc_info: BaseException | None = None, **__: object) -> None:
        if isinstance(exc_info, ConnectionError):
            return  # the client has disconnected
        if isinstance(exc_info, HttpProcessingError | RequestPayloadError):
            # The text of the exception is left out: it quotes the request, which may have a token.
            address = str(args[0]) if args else None
            self._sampled.info("malformed_request", address=address, reason=type(exc_info).__name__)
        else:
            log.error("aiohttp_failed", text=words % args if args else words, exc_info=exc_info or True)
