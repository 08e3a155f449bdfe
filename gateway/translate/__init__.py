"""Recorded streams of one dialect, told in another: read, heard, made into records, and written."""

from .losses import Losses
from .pieces import Unreadable
from .translating import Translation
from .writing import DialectWriting, RecordWriting, Writing

__all__ = ["DialectWriting", "Losses", "RecordWriting", "Translation", "Unreadable", "Writing"]
