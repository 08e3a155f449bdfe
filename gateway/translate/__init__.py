"""Translates a recorded stream of one dialect into another: reads, decodes, composes records, writes."""

from .recording_format import UnreadableRecording
from .translation import Translation
from .writer import DialectWriter, LossCounter, RecordWriter, TranslationWriter

__all__ = [
    "DialectWriter",
    "LossCounter",
    "RecordWriter",
    "Translation",
    "TranslationWriter",
    "UnreadableRecording",
]
