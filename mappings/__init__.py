"""The tables of the dialects, and the language that they are written in."""

from mappings.language import (
    FEATURES,
    FrameEncoder,
    SupportLevel,
    Table,
    UnknownWord,
    Vocabulary,
    builtin_path,
    builtin_table,
    feature_of,
    load_table,
)

__all__ = [
    "FEATURES",
    "FrameEncoder",
    "SupportLevel",
    "Table",
    "UnknownWord",
    "Vocabulary",
    "builtin_path",
    "builtin_table",
    "feature_of",
    "load_table",
]
