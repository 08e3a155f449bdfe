"""The path below which the gateway is mounted, if its application is a part of another one."""

from aiohttp import web

HEALTH_PATH, HEALTH_ROUTE = "/healthz", "dragoman-health"


def mount_prefix(app: web.Application) -> str:
    """The path of the sub-application; empty if the gateway is the whole application.

    aiohttp does not tell an application where it was added, but moves its routes there.
    """
    health = app.router.named_resources().get(HEALTH_ROUTE)
    return health.canonical.removesuffix(HEALTH_PATH) if health else ""
