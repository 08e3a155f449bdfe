"""Where a bucket is: what the address `s3://BUCKET/PREFIX?endpoint=URL` says, and what variables add to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from gateway.errors import Invalid

SCHEME = "s3://"
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PREFIX = re.compile(r"[A-Za-z0-9!_.*'()/-]*")
OPTIONS = ("endpoint", "links", "region")
LINKS = ("gateway", "direct")
FORM = "s3://BUCKET/PREFIX?endpoint=URL&region=NAME&links=direct"


@dataclass(frozen=True, kw_only=True)
class BucketLocation:
    """A prefix of a bucket, the server that has it, and whether clients may be sent there."""

    bucket: str
    prefix: str
    endpoint: str
    region: str
    has_direct_links: bool = False

    @property
    def shown(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")

    @classmethod
    def read(cls, address: str, environ: Mapping[str, str]) -> "BucketLocation":
        """Raises `Invalid` if the address is not of the form."""
        try:
            parts = urlsplit(address)
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError:
            raise Invalid(f"'{address}' is no address of a bucket; write {FORM}") from None
        prefix = parts.path.strip("/")
        is_bucket = parts.scheme == "s3" and BUCKET.fullmatch(parts.netloc) and not parts.fragment
        if not is_bucket or not PREFIX.fullmatch(prefix) or "//" in prefix:
            raise Invalid(f"'{address}' is no address of a bucket; write {FORM}")
        if unknown := sorted(options.keys() - set(OPTIONS)):
            raise Invalid(f"'{unknown[0]}' is no option of a bucket; there are: {', '.join(OPTIONS)}")
        if options.get("links", LINKS[0]) not in LINKS:
            raise Invalid(f"links: must be {' or '.join(LINKS)}, not '{options['links']}'")
        region = options.get("region") or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = (options.get("endpoint") or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
                    or f"https://s3.{region}.amazonaws.com")
        if urlsplit(endpoint).scheme not in ("http", "https") or not urlsplit(endpoint).hostname:
            raise Invalid(f"endpoint: must be an http:// or https:// address, not '{endpoint}'")
        return cls(bucket=parts.netloc, prefix=prefix, endpoint=endpoint.rstrip("/"), region=region,
                   has_direct_links=options.get("links") == "direct")
