"""The options of AAP's streams that tests try."""

TRIED = ("delta", "message", "none")
LIVE = "delta"
"""Those of a stream that is read while it happens."""
