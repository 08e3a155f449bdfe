"""The options of ZenFlux's streams that tests try."""

TRIED = ("", '{"multi_message":false}', '{"whole":true}', '{"framing":"sse","multi_message":false,"throttle":0.0}')
LIVE = ""
"""Those of a stream that is read while it happens."""
