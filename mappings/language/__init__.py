"""The language of the tables: it reads, checks and compiles them."""

from .encoder import NO_BINDINGS, FrameEncoder
from .explanation import ExplainedCue, ExplainedEvent, ExplainedFrame, Explanation, Loss
from .features import FEATURES, Feature, SupportLevel, feature_of
from .filters import UnknownWord
from .frame_decoder import DecodedFrame, FrameDecoder, UnreadableFrame
from .json_schema import schema_text
from .load import builtin_path, builtin_table, load_table
from .object_decoder import ObjectDecoder
from .projector import ProjectorBase, Step
from .scopes import Vocabulary
from .table import Table

__all__ = [
    "FEATURES",
    "NO_BINDINGS",
    "DecodedFrame",
    "ExplainedCue",
    "ExplainedEvent",
    "ExplainedFrame",
    "Explanation",
    "Feature",
    "FrameDecoder",
    "FrameEncoder",
    "Loss",
    "ObjectDecoder",
    "ProjectorBase",
    "Step",
    "SupportLevel",
    "Table",
    "UnknownWord",
    "UnreadableFrame",
    "Vocabulary",
    "builtin_path",
    "builtin_table",
    "feature_of",
    "load_table",
    "schema_text",
]
