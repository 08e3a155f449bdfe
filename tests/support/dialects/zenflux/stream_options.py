"""The options of ZenFlux's streams that tests try."""

from adapters.zenflux.server.stream_options import StreamOptions

LIVE = StreamOptions()
"""Those of a stream that is read while it happens."""
TRIED = (
    LIVE, StreamOptions(multi_message=False), StreamOptions(whole=True),
    StreamOptions(framing="sse", multi_message=False, throttle=0.0),
)
