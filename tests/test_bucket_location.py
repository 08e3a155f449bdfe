"""The address of a bucket: what it says, what variables add, and which mistakes are told."""

import pytest

from gateway.bucket_location import BucketLocation
from gateway.errors import Invalid


def test_the_address_comes_before_the_variables() -> None:
    environ = {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": "http://store:9000/"}
    found = BucketLocation.read("s3://agents/a/b/", environ)
    assert (found.bucket, found.prefix, found.region, found.endpoint) == ("agents", "a/b", "eu-west-1", "http://store:9000")
    assert not found.has_direct_links
    found = BucketLocation.read("s3://agents?endpoint=https://s.example&region=x&links=direct", environ)
    assert (found.prefix, found.region, found.endpoint) == ("", "x", "https://s.example")
    assert (found.has_direct_links, found.shown) == (True, "s3://agents")
    assert BucketLocation.read("s3://agents", {}).endpoint == "https://s3.us-east-1.amazonaws.com"


@pytest.mark.parametrize(("address", "words"), [
    ("s3://", "write s3://BUCKET"), ("s3://A", "write s3://BUCKET"), ("s3://agents//x//y", "write s3://BUCKET"),
    ("s3://agents/ü", "write s3://BUCKET"), ("s3://agents#x", "write s3://BUCKET"), ("gs://agents", "write s3://BUCKET"),
    ("s3://agents?endpont=x", "'endpont' is no option"), ("s3://agents?links=maybe", "gateway or direct"),
    ("s3://agents?endpoint=store:9000", "http://"), ("s3://[", "write s3://BUCKET"),
])
def test_a_mistake_is_told(address: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        BucketLocation.read(address, {})
