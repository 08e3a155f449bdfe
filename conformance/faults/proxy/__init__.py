"""A reverse proxy between the examiners and a server: invisible, unless a meddler damages what passes."""
