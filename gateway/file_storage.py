"""Makes the storage that the setting `files:` names: folders, or a bucket."""

import hmac
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.bucket_location import BucketLocation
from gateway.client.s3 import Bucket, CredentialSource
from gateway.config import Config, WorkspaceSettings
from gateway.ports import Clock, Workspaces
from gateway.resources import BucketWorkspaces, FileFolder, FileStore, FolderWorkspaces, UploadRules

from .storage_factory import secrets_keys

BUCKET_LINKS = b"links to files"


async def _close_nothing() -> None:
    """Close nothing: a folder has no connections."""


@dataclass(frozen=True)
class FileStorage:
    """The uploaded files and the workspaces, and what closes their connections."""

    files: FileStore
    workspaces: Workspaces
    close: Callable[[], Awaitable[None]]


class FileRules(Protocol):
    """The settings of files that a reload may change."""

    @property
    def uploads(self) -> UploadRules: ...
    @property
    def workspace(self) -> WorkspaceSettings: ...


def make_file_storage(config: Config, clock: Clock, rules: Callable[[], FileRules]) -> FileStorage:
    """Return what stores files: folders, or a bucket."""
    def trusted() -> bool:
        return rules().workspace.trust

    def uploads() -> UploadRules:
        return rules().uploads

    if (folder := config.files_folder) is not None:
        stored = FileFolder(folder / "files", clock)
        files = FileStore(stored, clock, uploads, lambda: [stored.link_secret()])
        return FileStorage(files, FolderWorkspaces(folder / "workspaces", trusted=trusted), _close_nothing)
    bucket = make_bucket(config, clock)
    secrets = _link_secrets(config)
    return FileStorage(
        FileStore(bucket.below("files"), clock, uploads, secrets),
        BucketWorkspaces(bucket.below("workspaces"), trusted=trusted), bucket.close)


def make_bucket(config: Config, clock: Clock) -> Bucket:
    """Return the bucket of the setting `files:`, which is asked nothing yet."""
    return Bucket(BucketLocation.read(config.files, os.environ), CredentialSource(os.environ, clock), clock)


def _link_secrets(config: Config) -> Callable[[], list[bytes]]:
    """The secrets that sign links: all servers make them of the keys that seal secrets."""
    return lambda: [hmac.digest(key.encode(), BUCKET_LINKS, "sha256") for key in secrets_keys(config)]
