"""Measures ratios: the gateway and a bare server that writes the same bytes, in one run on one machine."""
