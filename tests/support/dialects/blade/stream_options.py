"""The options of Blade's streams that tests try."""

from adapters.blade.server.stream_options import StreamOptions

TRIED = (StreamOptions(), StreamOptions(is_raw=True), StreamOptions(is_bare=True))
LIVE = StreamOptions()
"""Those of a stream that is read while it happens."""
