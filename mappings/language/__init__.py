"""The language of the tables: it reads, checks and compiles them."""

from .encoder import NO_BINDINGS, FrameEncoder, Framing
from .features import FEATURES, Feature, SupportLevel, feature_of
from .filters import UnknownWord
from .load import builtin_path, builtin_table, load_table
from .scopes import Vocabulary
from .table import Table

__all__ = [
    "FEATURES",
    "NO_BINDINGS",
    "Feature",
    "FrameEncoder",
    "Framing",
    "SupportLevel",
    "Table",
    "UnknownWord",
    "Vocabulary",
    "builtin_path",
    "builtin_table",
    "feature_of",
    "load_table",
]
