"""Measured ratios: the gateway beside a bare server that writes the same bytes, in one run on one machine."""
