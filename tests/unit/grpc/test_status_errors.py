import grpc
import pytest

from reserver.errors import ApiError
from reserver.grpc import status_errors


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(403, grpc.StatusCode.FAILED_PRECONDITION, id="exceeded quota"),
        pytest.param(422, grpc.StatusCode.FAILED_PRECONDITION, id="admission policy"),
        pytest.param(409, grpc.StatusCode.FAILED_PRECONDITION, id="conflict"),
        pytest.param(429, grpc.StatusCode.UNAVAILABLE, id="too many requests"),
        pytest.param(500, grpc.StatusCode.UNAVAILABLE, id="etcd"),
        pytest.param(0, grpc.StatusCode.UNAVAILABLE, id="no answer"),
    ],
)
def test_what_the_api_server_would_refuse_again_is_told_from_what_may_be_tried_again(
    status: int, code: grpc.StatusCode
) -> None:
    refused = status_errors.of(ApiError(status, "Reason", "in its own words"))
    assert refused.code is code
    assert "in its own words" in refused.message
