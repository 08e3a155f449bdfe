"""The API documents: OpenAPI and AsyncAPI, made from routes, wire models and tables when somebody asks for them."""

from .asyncapi import asyncapi_document
from .documents import ASYNCAPI, OPENAPI, ApiDocuments, choose_groups
from .openapi import openapi_document
from .route_groups import RouteGroup

__all__ = [
    "ASYNCAPI", "OPENAPI", "ApiDocuments", "RouteGroup", "asyncapi_document", "choose_groups", "openapi_document",
]
