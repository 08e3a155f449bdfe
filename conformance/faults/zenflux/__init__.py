"""The ZenFlux reference server, its variations that the protocol allows, and its faults."""
