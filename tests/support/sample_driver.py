"""An attempt of a driver with a valid specification that tests override.

Also functions to find parts of the manifests that are made from it.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from invalid_specs import SOUND, overlaid
from weir_operator.manifests import DriverAttempt, Owner, config, driver_pod
from weir_operator.resource import CheckpointedJobSpec
from weir_operator.resource.status_fields import RestorePoint, RestoreType

OWNER = Owner("orders", "shop", "0b5b3b0e-uid")
LAST_STATE = RestorePoint(
    type=RestoreType.LAST_STATE, deployment=3, recorded_at=datetime(2026, 1, 1, tzinfo=UTC)
)


def a_spec(**above: object) -> CheckpointedJobSpec:
    return CheckpointedJobSpec.model_validate(overlaid(SOUND, above))


def an_attempt(
    *, restore: RestorePoint = LAST_STATE, local_recovery: bool = False, **above: object
) -> DriverAttempt:
    """The seventh attempt; what is above is laid over the specification."""
    return DriverAttempt(
        "orders-driver-7", 7, a_spec(**above), restore, "orders-1f", local_recovery
    )


def a_driver(
    *, restore: RestorePoint = LAST_STATE, local_recovery: bool = False, **above: object
) -> dict[str, Any]:
    return driver_pod(OWNER, an_attempt(restore=restore, local_recovery=local_recovery, **above))


def a_config(
    *, restore: RestorePoint = LAST_STATE, local_recovery: bool = False, **above: object
) -> dict[str, str]:
    """The files of a driver's ConfigMap."""
    order = an_attempt(restore=restore, local_recovery=local_recovery, **above)
    made: dict[str, Any] = config(OWNER, order)
    files: dict[str, str] = made["data"]
    return files


def named(elements: Iterable[dict[str, Any]], name: str) -> dict[str, Any]:
    """The one element of a list that has this name."""
    (found,) = (element for element in elements if element["name"] == name)
    return found


def variables(container: Mapping[str, Any]) -> dict[str, str | None]:
    """What a container's variables say; one that comes from elsewhere says nothing."""
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def mounts(pod: Mapping[str, Any], container: str) -> dict[str, dict[str, Any]]:
    """The volumes that a container sees, by where it sees them."""
    volumes = pod["spec"]["volumes"]
    found = named(pod["spec"]["containers"], container)["volumeMounts"]
    return {mount["mountPath"]: named(volumes, mount["name"]) for mount in found}
