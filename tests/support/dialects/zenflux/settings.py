"""Settings of ZenFlux with which tests need not wait long."""

QUICK = {"sync_seconds": 1}
