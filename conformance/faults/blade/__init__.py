"""Blade: a small correct server, the faults that make it wrong, and the variations that the protocol allows."""
