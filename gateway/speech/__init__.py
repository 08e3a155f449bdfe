"""How agents' words become lawful events: the pen of those who write them, the scribe of those who take them down."""

from .pen import FRAGMENT, NOTHING, Pen, Speech, Tellings, each
from .scribe import Scribe

__all__ = ["FRAGMENT", "NOTHING", "Pen", "Scribe", "Speech", "Tellings", "each"]
