"""A reverse proxy between the examiners and a server: invisible, unless an interceptor damages what passes."""
