"""Quill: a small correct server, and the faults that make it wrong."""
