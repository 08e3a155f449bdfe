"""An S3-compatible store as a client sees it: signatures, credentials, and the requests of one bucket."""

from .bucket import Bucket
from .credentials import Credentials, CredentialSource
from .signature import presigned_url, signed_headers

__all__ = ["Bucket", "CredentialSource", "Credentials", "presigned_url", "signed_headers"]
