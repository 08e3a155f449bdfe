"""Translates a recorded stream of one dialect into another: reads, decodes, composes records, writes."""

from .loss_report import LossCounter
from .recorded_frames import UnreadableRecording
from .translation import Translation
from .writer import DialectWriter, RecordWriter, TranslationWriter

__all__ = [
    "DialectWriter",
    "LossCounter",
    "RecordWriter",
    "Translation",
    "TranslationWriter",
    "UnreadableRecording",
]
