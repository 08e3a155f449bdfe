"""The options of CAS's streams that tests try."""

from adapters.cas.server.stream_options import StreamOptions

TRIED = (StreamOptions(),)
LIVE = StreamOptions(deltas=("agent.message", "agent.thinking"))
"""Those of a stream that is read while it happens."""
