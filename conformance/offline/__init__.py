"""Offline judging: recordings in, the same report out; nothing is asked of any server."""
