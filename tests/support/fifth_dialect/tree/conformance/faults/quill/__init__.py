"""A small correct Quill server, and two that are wrong."""
