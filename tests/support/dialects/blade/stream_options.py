"""The options of Blade's streams that tests try."""

TRIED = ("", "raw", "bare")
LIVE = ""
"""Those of a stream that is read while it happens."""
