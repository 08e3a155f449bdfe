"""The options of AAP's streams that tests try."""

from adapters.aap.server.stream_options import StreamOptions

TRIED = (StreamOptions(), StreamOptions("message"), StreamOptions("none"), StreamOptions(has_ids=True))
LIVE = StreamOptions()
"""Those of a stream that is read while it happens."""
