"""The options of AAP's streams that tests try."""

from adapters.aap.server.stream_options import StreamOptions

LIVE = StreamOptions()
"""Those of a stream that is read while it happens."""
TRIED = (LIVE, StreamOptions(mode="message"), StreamOptions(mode="none"), StreamOptions(has_ids=True))
