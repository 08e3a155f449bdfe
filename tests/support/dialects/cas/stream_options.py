"""The options of CAS's streams that tests try."""

from adapters.cas.server.stream_options import StreamOptions

TRIED = ("",)
LIVE = StreamOptions(deltas=("agent.message", "agent.thinking")).word
"""Those of a stream that is read while it happens."""
