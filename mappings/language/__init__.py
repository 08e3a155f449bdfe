"""The language of the tables: read, shape, check, compile; what a dialect calls things is data."""

from .features import FEATURES, Feature, Level, feature_of
from .filters import UnknownWord
from .load import builtin_path, builtin_table, load_table
from .names import Vocabulary
from .speaker import NOTHING, Framing, Speaker
from .table import Table

__all__ = [
    "FEATURES",
    "NOTHING",
    "Feature",
    "Framing",
    "Level",
    "Speaker",
    "Table",
    "UnknownWord",
    "Vocabulary",
    "builtin_path",
    "builtin_table",
    "feature_of",
    "load_table",
]
