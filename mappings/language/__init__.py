"""The language of the tables: it reads, checks and compiles them."""

from gateway.model import SupportLevel

from .binding_reader import UnreadableBody
from .encoder import NO_BINDINGS, FrameEncoder
from .explanation import ExplainedCue, ExplainedEvent, ExplainedFrame, Explanation, Loss
from .features import (
    FEATURE_EVENTS,
    FEATURES,
    LEVEL_MEANINGS,
    LEVEL_SYMBOLS,
    LOST_LEVELS,
    Feature,
    feature_of,
    losses_between,
)
from .filters import UnknownWord
from .frame_decoder import DecodedFrame, FrameDecoder, UnreadableFrame
from .json_schema import schema_text
from .load import builtin_path, builtin_table, load_table
from .object_decoder import Body, ObjectDecoder, rows_of
from .projector import ProjectorBase, Step
from .routes import PlainTable, Route, read_plain_table
from .row_notes import RowNotes
from .scopes import Vocabulary
from .server_table import Bindings, ServerTable
from .shape import RouteShape
from .table import Table
from .wire_schemas import Schema, WireSchemas, any_of

__all__ = [
    "FEATURES",
    "FEATURE_EVENTS",
    "LEVEL_MEANINGS",
    "LEVEL_SYMBOLS",
    "LOST_LEVELS",
    "NO_BINDINGS",
    "Bindings",
    "Body",
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
    "PlainTable",
    "ProjectorBase",
    "Route",
    "RouteShape",
    "RowNotes",
    "Schema",
    "ServerTable",
    "Step",
    "SupportLevel",
    "Table",
    "UnknownWord",
    "UnreadableBody",
    "UnreadableFrame",
    "Vocabulary",
    "WireSchemas",
    "any_of",
    "builtin_path",
    "builtin_table",
    "feature_of",
    "load_table",
    "losses_between",
    "read_plain_table",
    "rows_of",
    "schema_text",
]
