"""A small correct Blade server, and everything that can be wrong with one."""
