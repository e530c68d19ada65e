"""The files of a snapshot are deleted by a Job in its namespace."""

import pytest

from weir_operator.manifests import Owner, disposal_job
from weir_operator.manifests.object_names import disposal_name
from weir_operator.resource.snapshot import DisposalMeans

SNAPSHOT = Owner("orders-nightly", "shop", "77aa-uid")
MEANS = DisposalMeans(image="weir:1", service_account="weir-driver", storage_secrets=("s3",))


def made(path="s3://bucket/savepoint-1"):
    return disposal_job(SNAPSHOT, path, MEANS)


def pod():
    return made()["spec"]["template"]["spec"]


def test_it_deletes_what_lies_at_the_path():
    """K5: with the image that the job had."""
    (container,) = pod()["containers"]

    assert container["image"] == "weir:1"
    assert container["args"] == ["python3", "-m", "weir.cli", "dispose", "s3://bucket/savepoint-1"]


def test_it_has_the_keys_of_the_storage_by_name():
    """K5 X4: the operator never reads them."""
    (container,) = pod()["containers"]

    assert container["envFrom"] == [{"secretRef": {"name": "s3"}}]


def test_a_path_that_a_driver_reported_is_not_expanded():
    """X3 X4: it could name the variable of a secret, and end in a log."""
    (container,) = made("s3://b/$(AWS_SECRET_ACCESS_KEY)")["spec"]["template"]["spec"]["containers"]

    assert container["args"][-1] == "s3://b/$$(AWS_SECRET_ACCESS_KEY)"


def test_it_belongs_to_its_snapshot():
    """K5: and goes with it."""
    (owner,) = made()["metadata"]["ownerReferences"]

    assert (owner["kind"], owner["name"]) == ("CheckpointedJobSnapshot", "orders-nightly")


def test_it_may_do_no_more_than_it_must():
    """K9: it needs no token of the API server."""
    (container,) = pod()["containers"]

    assert pod()["automountServiceAccountToken"] is False
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("length", [10, 55, 56, 253])
def test_its_name_fits_a_job(length):
    """K5: a snapshot's name may be longer."""
    name = disposal_name("s" * length)

    assert len(name) <= 63
    assert name.endswith("-dispose")


def test_long_names_of_snapshots_have_distinct_disposal_names():
    """K5: or one Job would be taken for the other's."""
    assert disposal_name("s" * 80 + "a") != disposal_name("s" * 80 + "b")
