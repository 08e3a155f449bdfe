"""The options of Blade's streams that tests try."""

from adapters.blade.server.stream_options import StreamOptions

LIVE = StreamOptions()
"""Those of a stream that is read while it happens."""
TRIED = (LIVE, StreamOptions(is_raw=True), StreamOptions(is_bare=True))
