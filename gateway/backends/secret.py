"""Keys in settings: written as they are, or better as `$NAME`, an environment variable that holds them."""

import os
from typing import Annotated

from pydantic import BeforeValidator, SecretStr


def _looked_up(value: object) -> object:
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    name = value[1:].removeprefix("{").removesuffix("}")
    if name not in os.environ:
        raise ValueError(f"the environment has no variable {name}")
    return os.environ[name]


Secret = Annotated[SecretStr, BeforeValidator(_looked_up)]
"""A setting that nothing prints; `get_secret_value()` tells it."""
