"""An S3-compatible server for tests."""
