"""All that Blade serves beside chat: memories, keys, files, shares, checkpoints, exports, tasks and replays."""

from aiohttp import web

from gateway.web import Context

from .rest_about import about_routes
from .rest_absent import absent_routes
from .rest_archive import archive_routes
from .rest_checkpoints import checkpoint_routes
from .rest_keys import key_routes
from .rest_memories import memory_routes
from .rest_replay import replay_routes
from .rest_share import share_routes
from .rest_tasks import task_routes
from .rest_workspace import workspace_routes

ROOMS = (
    about_routes, memory_routes, key_routes, workspace_routes, share_routes, checkpoint_routes, archive_routes,
    task_routes, replay_routes, absent_routes,
)


def rest_routes(context: Context) -> list[web.RouteDef]:
    return [route for room in ROOMS for route in room(context)]
