"""The console: a page that shows one session in every protocol at once, and the API behind the page."""

from .columns import ConsoleColumns
from .console import ApiError, Console, error_body
from .operations import ConsoleServices, DialectPlace

__all__ = ["ApiError", "Console", "ConsoleColumns", "ConsoleServices", "DialectPlace", "error_body"]
