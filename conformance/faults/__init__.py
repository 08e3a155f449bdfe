"""A small correct server of each dialect, and the many ways to break it: every case is proven on a wrong server."""
