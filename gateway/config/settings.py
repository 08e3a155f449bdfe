"""The types of all settings; the comments of config.yaml say what each setting is for."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    SecretStr,
)

import gateway.model as m
from gateway.bucket_location import SCHEME
from gateway.json_values import JsonObject

from .access import Host, HostOrNetwork, Network, Origin
from .oidc_settings import OidcSettings
from .retention import RetentionSettings
from .routes import RouteSettings

NonEmptyText = Annotated[str, Field(min_length=1)]
SHORTEST_KEY = 32
AUTH_METHODS = ("none", "keys", "oidc")


def _empty_if_bare(value: object) -> object:
    """Read a name with nothing after it (`demo:`) as a name with no settings."""
    return {} if value is None else value


def _without_slash(mount: str) -> str:
    """Remove the slash at the end of a mount: every route begins with one."""
    return mount.rstrip("/")


def _long_enough(keys: SecretStr) -> SecretStr:
    if any(len(key.strip()) < SHORTEST_KEY for key in keys.get_secret_value().split(",")) and keys.get_secret_value():
        raise ValueError(f"a key has at least {SHORTEST_KEY} characters; try `openssl rand -base64 32`")
    return keys


def _web_address(url: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", url):
        raise ValueError("expected the address of a collector, such as http://localhost:4318")
    return url


def _known_auth(auth: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Check that `auth` is one known word, or a list of known words."""
    for word in (auth,) if isinstance(auth, str) else auth:
        if word not in (AUTH_METHODS if isinstance(auth, str) else AUTH_METHODS[1:]):
            hint = "list keys, oidc, or both" if word == "none" else f"there are: {', '.join(AUTH_METHODS)}"
            raise ValueError(f"'{word}' is not a way to authenticate; {hint}")
    if not auth:
        raise ValueError("an empty list lets nobody in; write `none`, or list keys, oidc, or both")
    return auth


class SettingsModel(BaseModel):
    """The base of all settings: they are frozen, and unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class DialectSettings(SettingsModel):
    """Where a dialect is served; the dialect validates its other settings itself."""

    model_config = ConfigDict(extra="allow")

    mount: Annotated[str, AfterValidator(_without_slash)] | None = None

    @property
    def settings(self) -> JsonObject:
        return dict(self.model_extra or {})


class ToolSettings(SettingsModel):
    """A tool that the server executes."""

    name: NonEmptyText
    title: str | None = None
    description: str = ""
    parameters: JsonObject = {}
    permission: m.Permission = m.Permission.ALLOW


class OptionSettings(SettingsModel):
    """An option that a client may set for its session; `options` are the choices of a select."""

    name: NonEmptyText
    type: m.OptionKind = m.OptionKind.TEXT
    default: str = ""
    title: str | None = None
    description: str | None = None
    options: tuple[str, ...] = ()


class CapabilitySettings(SettingsModel):
    """What the agent can do; None leaves the answer to the backend."""

    streaming: tuple[Literal["delta", "message", "none"], ...] | None = None
    history: tuple[Literal["full", "compacted"], ...] | None = None
    images: tuple[Literal["http", "data"], ...] | None = None
    client_tools: bool | None = None


class AgentSettings(SettingsModel):
    """An agent: its backend, the settings of the backend, and values that replace those of the backend's agent card."""

    backend: NonEmptyText
    settings: JsonObject = {}
    title: str | None = None
    description: str | None = None
    version: str | None = None
    model: str | None = None
    tools: tuple[ToolSettings, ...] | None = None
    options: tuple[OptionSettings, ...] | None = None
    capabilities: CapabilitySettings = CapabilitySettings()


class PerKeyLimitSettings(SettingsModel):
    """The limits of one key; null removes a limit."""

    requests_per_second: PositiveFloat | None = 200
    request_burst: PositiveInt = 3_000
    turns: PositiveInt | None = 200
    streams: PositiveInt | None = 2_000
    sessions: PositiveInt | None = 100_000
    resources: PositiveInt | None = 20_000
    stored_bytes: PositiveInt | None = 10 * 1024**3


class LimitSettings(SettingsModel):
    """The limits of the whole server: sizes, times and numbers."""

    body_bytes: PositiveInt = 10 * 1024 * 1024
    history_messages: PositiveInt = 10_000
    turn_seconds: PositiveFloat = 3600
    turn_events: PositiveInt = 2_000_000
    ask_seconds: PositiveFloat = 86_400
    send_seconds: PositiveFloat = 30
    heartbeat_seconds: PositiveFloat = 10
    drain_seconds: PositiveFloat = 10
    lease_seconds: PositiveFloat = 10
    max_lag_events: PositiveInt = 100_000
    max_sessions: PositiveInt = 1_000_000
    cached_sessions: PositiveInt = 5_000
    max_resources: PositiveInt = 100_000
    max_subscribers: PositiveInt = 10_000
    header_seconds: PositiveFloat = 15
    body_seconds: PositiveFloat = 30
    handshake_seconds: PositiveFloat = 15
    idle_seconds: PositiveFloat = 75
    max_connections: PositiveInt = 20_000
    max_connections_per_address: PositiveInt = 10_000
    max_unauthenticated: PositiveInt = 1_000
    max_unauthenticated_per_address: PositiveInt = 100
    wrong_keys_per_minute: PositiveInt = 20
    per_key: Annotated[PerKeyLimitSettings, BeforeValidator(_empty_if_bare)] = PerKeyLimitSettings()


class UploadSettings(SettingsModel):
    """Which files clients may upload, and how long a link to a file is valid."""

    max_bytes: PositiveInt = 100 * 1024 * 1024
    types: tuple[NonEmptyText, ...] = ("*/*",)
    link_seconds: PositiveFloat = 900


class LoggingSettings(SettingsModel):
    """The format and the level of the server's own log on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class TelemetrySettings(SettingsModel):
    """The collector that gets the traces of turns; None: no traces."""

    otlp: Annotated[str, AfterValidator(_web_address)] | None = None
    headers: dict[str, SecretStr] = {}
    service: NonEmptyText = "dragoman"
    share: float = Field(default=1.0, ge=0, le=1)


class TlsSettings(SettingsModel):
    """The PEM files of a certificate (with its chain) and of its key."""

    certificate: Path
    key: Path


class OutboundSettings(SettingsModel):
    """Host names and networks that clients may name beside public addresses."""

    allow: tuple[HostOrNetwork, ...] = ()


class WorkspaceSettings(SettingsModel):
    """Whether clients may upload files that agents read as configuration."""

    trust: bool = False


class ManagementSettings(SettingsModel):
    """Who may change agents, tools, MCP servers, skills and settings over the API, and what the server offers of them.

    `changes`: users change their own (own), only admins change anything (read), or nobody does (off). `execute` are the
    tools that may run outside of any conversation. `skills` and `docs` are folders.
    """

    changes: Literal["own", "read", "off"] = "own"
    execute: tuple[NonEmptyText, ...] = ("clock", "calc", "search")
    skills: Path | None = None
    docs: Path | None = None


class ShadowSettings(SettingsModel):
    """A second backend that runs a copy of each turn; the file `report` has the differences."""

    backend: NonEmptyText
    settings: JsonObject = {}
    agents: tuple[NonEmptyText, ...] | None = None
    share: float = Field(default=1.0, ge=0, le=1)
    report: Path = Path("shadow.jsonl")
    max_concurrent: PositiveInt = 8
    timeout_seconds: PositiveFloat = 300


@dataclass(frozen=True)
class ConfigSource:
    """The file that settings were read from, its name as the user wrote it, and the warnings about old settings."""

    file: Path | None = None
    display_path: Path | None = None
    warnings: tuple[str, ...] = ()


class Config(SettingsModel):
    """All settings of one server; `load_config` makes `data` and the files that it names absolute paths."""

    host: NonEmptyText = "127.0.0.1"
    port: int = Field(default=18900, ge=0, le=65535)
    hosts: tuple[Host, ...] = ()
    origins: tuple[Origin, ...] | None = None
    trusted_proxies: tuple[Network, ...] = ()
    tls: TlsSettings | None = None
    data: Path = Path("data")
    log: str = "sqlite"
    files: str = ""
    durability: Literal["normal", "fsync"] = "normal"
    secrets_key: Annotated[SecretStr, AfterValidator(_long_enough)] = SecretStr("")
    auth: Annotated[str | tuple[str, ...], AfterValidator(_known_auth)] = "none"
    oidc: OidcSettings | None = None
    admins: tuple[NonEmptyText, ...] = ()
    audit: Path = Path("audit.jsonl")
    on_disconnect: Literal["continue", "cancel"] = "continue"
    console: bool = True
    dialects: dict[str, Annotated[DialectSettings, BeforeValidator(_empty_if_bare)]] = {}
    agents: dict[str, AgentSettings] = {}
    mappings: dict[str, Path] = {}
    dialect_folders: tuple[Path, ...] = ()
    shadow: ShadowSettings | None = None
    route: tuple[RouteSettings, ...] = ()
    limits: Annotated[LimitSettings, BeforeValidator(_empty_if_bare)] = LimitSettings()
    retention: Annotated[RetentionSettings, BeforeValidator(_empty_if_bare)] = RetentionSettings()
    uploads: Annotated[UploadSettings, BeforeValidator(_empty_if_bare)] = UploadSettings()
    outbound: Annotated[OutboundSettings, BeforeValidator(_empty_if_bare)] = OutboundSettings()
    workspace: Annotated[WorkspaceSettings, BeforeValidator(_empty_if_bare)] = WorkspaceSettings()
    management: Annotated[ManagementSettings, BeforeValidator(_empty_if_bare)] = ManagementSettings()
    logging: Annotated[LoggingSettings, BeforeValidator(_empty_if_bare)] = LoggingSettings()
    telemetry: Annotated[TelemetrySettings, BeforeValidator(_empty_if_bare)] = TelemetrySettings()

    _source: ConfigSource = PrivateAttr(default=ConfigSource())

    def with_source(self, source: ConfigSource) -> "Config":
        """Return a copy of the settings that knows where the settings come from."""
        copy = self.model_copy()
        copy._source = source
        return copy

    @property
    def auth_methods(self) -> tuple[str, ...]:
        """The ways to authenticate: keys, oidc, or both; none with `auth: none`."""
        return tuple(word for word in AUTH_METHODS[1:] if word == self.auth or word in self.auth)

    @property
    def file(self) -> Path | None:
        """The file that the settings were read from, as an absolute path."""
        return self._source.file

    @property
    def display_path(self) -> Path | None:
        """The name of the file as the user wrote it, for messages."""
        return self._source.display_path

    @property
    def source_files(self) -> tuple[Path, ...]:
        """Every file that a change of the settings can come from: the settings, the tables, the certificate."""
        certificate = (self.tls.certificate, self.tls.key) if self.tls else ()
        return ((self.file,) if self.file else ()) + tuple(self.mappings.values()) + certificate

    @property
    def files_folder(self) -> Path | None:
        """The folder that has the folders `files` and `workspaces`; None if a bucket has them."""
        return None if self.files.startswith(SCHEME) else Path(self.files) if self.files else self.data

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each setting that works and should be changed."""
        return self._source.warnings

    @property
    def quota(self) -> PerKeyLimitSettings:
        """The limits of each key; without keys only limits that the file sets hold, for all clients together."""
        limits = self.limits.per_key
        if self.auth != "none":
            return limits
        unbounded = {name for name in PerKeyLimitSettings.model_fields if name != "request_burst"}
        return limits.model_copy(update=dict.fromkeys(unbounded - limits.model_fields_set))

    @property
    def default_agent(self) -> str:
        """The first agent in the file."""
        return next(iter(self.agents))
