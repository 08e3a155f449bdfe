"""Translates a recorded stream of one dialect into another: reads, decodes, composes records, writes."""

from .record_composer import RecordComposer
from .recording_format import UnreadableRecording
from .translation import Translation
from .writer import DialectWriter, LossCounter, RecordWriter, TranslationWriter

__all__ = [
    "DialectWriter",
    "LossCounter",
    "RecordComposer",
    "RecordWriter",
    "Translation",
    "TranslationWriter",
    "UnreadableRecording",
]
