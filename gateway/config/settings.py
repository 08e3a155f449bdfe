"""The shape of the settings; config.yaml says in its comments what each one is for."""

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    SecretStr,
)

import gateway.model as m

from .access import Host, Network, Origin

NonEmptyText = Annotated[str, Field(min_length=1)]
SHORTEST_KEY = 32
_HOST_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
AUTH_METHODS = ("none", "keys", "oidc")


def _empty_if_bare(value: Any) -> Any:
    """A name with nothing after it (`demo:`) stands for a name with no settings."""
    return {} if value is None else value


def _without_slash(mount: str) -> str:
    """Routes are hung below a mount, and begin with a slash of their own."""
    return mount.rstrip("/")


def _long_enough(keys: SecretStr) -> SecretStr:
    if any(len(key.strip()) < SHORTEST_KEY for key in keys.get_secret_value().split(",")) and keys.get_secret_value():
        raise ValueError(f"a key has at least {SHORTEST_KEY} characters; try `openssl rand -base64 32`")
    return keys


def _host_or_network(entry: str) -> str:
    if not _HOST_NAME.fullmatch(entry):
        try:
            ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            raise ValueError("expected a host name (mcp.example, *.example) or a network (10.0.0.0/8, ::1)") from None
    return entry


def _known_auth(auth: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """One word, or a list of ways in."""
    for word in (auth,) if isinstance(auth, str) else auth:
        if word not in (AUTH_METHODS if isinstance(auth, str) else AUTH_METHODS[1:]):
            hint = "list keys, oidc, or both" if word == "none" else f"there are: {', '.join(AUTH_METHODS)}"
            raise ValueError(f"'{word}' is no way to come in here; {hint}")
    if not auth:
        raise ValueError("an empty list lets nobody in; write `none`, or list keys, oidc, or both")
    return auth


class SettingsModel(BaseModel):
    """Settings are read once and never change; what is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class DialectSettings(SettingsModel):
    """Where a dialect is served; whatever else is said of it is the dialect's own to understand."""

    model_config = ConfigDict(extra="allow")

    mount: Annotated[str, AfterValidator(_without_slash)] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class ToolSettings(SettingsModel):
    """A tool that the server carries out."""

    name: NonEmptyText
    title: str | None = None
    description: str = ""
    parameters: dict[str, Any] = {}
    permission: m.Permission = m.Permission.ALLOW


class OptionSettings(SettingsModel):
    """Something a client may set for its session; `options` are the choices of a select."""

    name: NonEmptyText
    type: m.OptionKind = m.OptionKind.TEXT
    default: str = ""
    title: str | None = None
    description: str | None = None
    options: tuple[str, ...] = ()


class CapabilitySettings(SettingsModel):
    """What the agent can do; what is not said here is as the backend says."""

    streaming: tuple[Literal["delta", "message", "none"], ...] | None = None
    history: tuple[Literal["full", "compacted"], ...] | None = None
    images: tuple[Literal["http", "data"], ...] | None = None
    client_tools: bool | None = None


class AgentSettings(SettingsModel):
    """An agent: its backend, the backend's own settings, and what clients are told in place of the backend's card."""

    backend: NonEmptyText
    settings: dict[str, Any] = {}
    title: str | None = None
    description: str | None = None
    version: str | None = None
    model: str | None = None
    tools: tuple[ToolSettings, ...] | None = None
    options: tuple[OptionSettings, ...] | None = None
    capabilities: CapabilitySettings = CapabilitySettings()


class PerKeyLimitSettings(SettingsModel):
    """How much one key may have or do; null lifts a limit."""

    requests_per_second: PositiveFloat | None = 200
    request_burst: PositiveInt = 3_000
    turns: PositiveInt | None = 200
    streams: PositiveInt | None = 2_000
    sessions: PositiveInt | None = 100_000
    resources: PositiveInt | None = 20_000
    stored_bytes: PositiveInt | None = 10 * 1024**3


class LimitSettings(SettingsModel):
    """How much, how long and how many."""

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
    sessions_at_hand: PositiveInt = 5_000
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
    """Which files clients may leave here, and how long a link to one holds."""

    max_bytes: PositiveInt = 100 * 1024 * 1024
    types: tuple[NonEmptyText, ...] = ("*/*",)
    link_seconds: PositiveFloat = 900


class LoggingSettings(SettingsModel):
    """What the server says about itself on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class TlsSettings(SettingsModel):
    """The files of a certificate (with its chain) and of its key, in PEM."""

    certificate: Path
    key: Path


class OutboundSettings(SettingsModel):
    """Which addresses clients may name beside public ones: host names and networks."""

    allow: tuple[Annotated[NonEmptyText, AfterValidator(_host_or_network)], ...] = ()


class WorkspaceSettings(SettingsModel):
    """Whether files that clients upload may be the configuration of an agent."""

    trust: bool = False


class ShadowSettings(SettingsModel):
    """A second backend that is given a copy of each turn; where the two differ is written into `report`."""

    backend: NonEmptyText
    settings: dict[str, Any] = {}
    agents: tuple[NonEmptyText, ...] | None = None
    share: float = Field(default=1.0, ge=0, le=1)
    report: Path = Path("shadow.jsonl")
    at_once: PositiveInt = 8
    seconds: PositiveFloat = 300


class OidcSettings(SettingsModel):
    """Who signs the tokens that `auth: oidc` lets in, and what a token must say."""

    issuer: NonEmptyText
    audience: NonEmptyText
    user_claim: NonEmptyText = "sub"
    jwks_url: str = ""
    algorithms: tuple[Literal[
        "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"
    ], ...] = ("RS256", "ES256")
    leeway_seconds: NonNegativeFloat = 60
    refresh_seconds: PositiveFloat = 60
    cache_seconds: PositiveFloat = 3600


class Config(SettingsModel):
    """All settings of one server, checked; `data` and the files of `mappings` are whole paths."""

    host: NonEmptyText = "127.0.0.1"
    port: int = Field(default=18900, ge=0, le=65535)
    hosts: tuple[Host, ...] = ()
    origins: tuple[Origin, ...] | None = None
    trusted_proxies: tuple[Network, ...] = ()
    tls: TlsSettings | None = None
    data: Path = Path("data")
    log: str = "sqlite"
    durability: Literal["normal", "fsync"] = "normal"
    secrets_key: Annotated[SecretStr, AfterValidator(_long_enough)] = SecretStr("")
    auth: Annotated[str | tuple[str, ...], AfterValidator(_known_auth)] = "none"
    oidc: OidcSettings | None = None
    admins: tuple[NonEmptyText, ...] = ()
    audit: Path = Path("audit.jsonl")
    on_disconnect: Literal["continue", "cancel"] = "continue"
    dialects: dict[str, Annotated[DialectSettings, BeforeValidator(_empty_if_bare)]] = {}
    agents: dict[str, AgentSettings] = {}
    mappings: dict[str, Path] = {}
    shadow: ShadowSettings | None = None
    limits: Annotated[LimitSettings, BeforeValidator(_empty_if_bare)] = LimitSettings()
    uploads: Annotated[UploadSettings, BeforeValidator(_empty_if_bare)] = UploadSettings()
    outbound: Annotated[OutboundSettings, BeforeValidator(_empty_if_bare)] = OutboundSettings()
    workspace: Annotated[WorkspaceSettings, BeforeValidator(_empty_if_bare)] = WorkspaceSettings()
    journal: Annotated[LoggingSettings, BeforeValidator(_empty_if_bare)] = LoggingSettings()

    _file: Path | None = PrivateAttr(default=None)
    _shown: Path | None = PrivateAttr(default=None)
    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @property
    def auth_methods(self) -> tuple[str, ...]:
        """What a client can show to come in: keys, oidc, or both; nothing with `auth: none`."""
        return tuple(word for word in AUTH_METHODS[1:] if word == self.auth or word in self.auth)

    @property
    def file(self) -> Path | None:
        """The file this was read from."""
        return self._file

    @property
    def display_path(self) -> Path | None:
        """The same as the user called it: what problems are told with."""
        return self._shown

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that these settings come from or name: what a watcher watches."""
        certificate = (self.tls.certificate, self.tls.key) if self.tls else ()
        return ((self._file,) if self._file else ()) + tuple(self.mappings.values()) + certificate

    @property
    def warnings(self) -> tuple[str, ...]:
        """What works and should be changed, a line each."""
        return self._warnings

    @property
    def quota(self) -> PerKeyLimitSettings:
        """What holds for each key; where there are no keys, what is written in the settings holds for everybody."""
        limits = self.limits.per_key
        if self.auth != "none":
            return limits
        unbounded = {name for name in PerKeyLimitSettings.model_fields if name != "request_burst"}
        return limits.model_copy(update=dict.fromkeys(unbounded - limits.model_fields_set))

    @property
    def default_agent(self) -> str:
        """The first one in the file."""
        return next(iter(self.agents))
