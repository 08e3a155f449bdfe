"""A small correct ZenFlux server written for being broken, the ways of breaking it, and the liberties it may take."""
