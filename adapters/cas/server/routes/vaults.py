"""CAS's vaults and their credentials, whose secrets are never shown."""

from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web
from pydantic import BaseModel, SecretStr

from adapters.cas.server import resource_views as views
from adapters.cas.server.resource_routes import (
    ResourceDraft,
    ResourceDrafts,
    ResourceHandlers,
    ResourceKind,
    ResourceRoutes,
    updated_metadata,
)
from adapters.cas.wire import (
    BearerAuth,
    CasSettings,
    CredentialChange,
    EnvironmentVariableAuth,
    McpOAuth,
    NewCredential,
    NewVault,
    VaultChange,
)
from gateway.errors import Invalid
from gateway.http import Answers, Context, json_response, validate
from gateway.ports import Resource

AUTH_MODELS: dict[str, type[BaseModel]] = {
    "static_bearer": BearerAuth, "environment_variable": EnvironmentVariableAuth, "mcp_oauth": McpOAuth,
}


VAULT = ResourceKind("vault", "Vault", "vault")
CREDENTIAL = ResourceKind("credential", "Credential", "cred", VAULT)


class VaultRoutes:
    """The routes of vaults."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        routes = ResourceRoutes(context, VAULT, self._body)
        self.handlers = ResourceHandlers.of(
            routes, ResourceDrafts(routes, NewVault, self._draft, VaultChange, self._changed)
        )

    async def _draft(self, request: web.Request, new: NewVault) -> ResourceDraft:
        return ResourceDraft({"name": new.display_name, "metadata": updated_metadata(self._context, {}, new.metadata)})

    async def _changed(self, request: web.Request, change: VaultChange, old: Resource) -> ResourceDraft:
        return ResourceDraft({
            "name": change.display_name or old.body["name"],
            "metadata": updated_metadata(self._context, old.body["metadata"], change.metadata),
        })

    async def _body(self, request: web.Request, found: Resource) -> object:
        return views.vault_body(self._context.table, found)


class CredentialRoutes:
    """The routes of the credentials of a vault."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        self._stored = ResourceRoutes(context, CREDENTIAL, self._body)
        self.handlers = ResourceHandlers.of(
            self._stored, ResourceDrafts(self._stored, NewCredential, self._draft, CredentialChange, self._changed)
        )

    async def _draft(self, request: web.Request, new: NewCredential) -> ResourceDraft:
        shown, secrets = split_secrets(new.auth)
        self._context.check_addresses(_auth_addresses(shown))
        return ResourceDraft({"name": new.display_name, "metadata": new.metadata or {}, "auth": shown}, secrets)

    async def _changed(self, request: web.Request, change: CredentialChange, old: Resource) -> ResourceDraft:
        name = change.display_name if "display_name" in change.model_fields_set else old.body["name"]
        metadata = updated_metadata(self._context, old.body["metadata"], change.metadata)
        body = {**old.body, "name": name, "metadata": metadata}
        if change.auth is None:
            return ResourceDraft(body)
        shown, secrets = _changed_auth(old, change.auth)
        self._context.check_addresses(_auth_addresses(shown))
        return ResourceDraft({**body, "auth": shown}, secrets)

    async def _body(self, request: web.Request, found: Resource) -> object:
        return views.credential_body(self._context.table, found)

    @Answers("credential.validation")
    async def validate(self, request: web.Request) -> web.Response:
        found = await self._stored.found(request)
        if found.body["auth"]["type"] != "mcp_oauth":
            raise Invalid(f"Credential '{found.resource_id}' is of type {found.body['auth']['type']}, not mcp_oauth.")
        return json_response(views.validation_body(self._context.table, found, self._context.clock()))


def _auth_addresses(auth: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The addresses that a credential names, each with its field."""
    named = {"auth.mcp_server_url": auth.get("mcp_server_url"),
             "auth.refresh.token_endpoint": auth.get("refresh", {}).get("token_endpoint")}
    yield from ((at, url) for at, url in named.items() if url is not None)


# -- what is secret and what is not -----------------------------------------------------------------------------------

def split_secrets(auth: BaseModel, at: str = "") -> tuple[dict[str, object], dict[str, str]]:
    """The public fields, and the secrets by their places."""
    shown: dict[str, object] = {}
    secrets: dict[str, str] = {}
    for word in type(auth).model_fields:
        value = getattr(auth, word)
        if isinstance(value, SecretStr):
            secrets[f"{at}{word}"] = value.get_secret_value()
        elif isinstance(value, BaseModel):
            shown[word], deeper = split_secrets(value, f"{at}{word}.")
            secrets |= deeper
        elif value is not None:
            shown[word] = value
    return shown, secrets


def join_secrets(shown: dict[str, Any], secrets: dict[str, str]) -> dict[str, object]:
    """The credential with its secrets put back in their places: the reverse of `split_secrets`."""
    whole = {word: dict(value) if isinstance(value, dict) else value for word, value in shown.items()}
    for place, secret in secrets.items():
        *above, word = place.split(".")
        at = whole
        for step in above:
            at[step] = dict(at.get(step, {}))
            at = at[step]
        at[word] = secret
    return whole


def _changed_auth(old: Resource, change: Mapping[str, object]) -> tuple[dict[str, object], dict[str, str]]:
    """The credential after a change; its type and its server cannot change."""
    was = old.body["auth"]
    for word in ("type", "mcp_server_url", "secret_name"):
        if change.get(word, was.get(word)) != was.get(word):
            raise Invalid(f"auth.{word}: cannot be changed; make a new credential", param=f"auth.{word}")
    whole = _merged(join_secrets(was, old.secrets), change)
    return split_secrets(validate(AUTH_MODELS[was["type"]], whole, "auth"))


def _merged(old: Mapping[str, object], change: Mapping[str, object]) -> dict[str, object]:
    merged = dict(old)
    for word, value in change.items():
        below = merged.get(word)
        merged[word] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return {word: value for word, value in merged.items() if value is not None}
