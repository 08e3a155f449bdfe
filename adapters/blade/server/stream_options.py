"""Blade, outward: records in, Socket.IO events out. No clock, no socket."""


RAW, BARE = "raw", "bare"
