"""The objects that the operator makes, as data: values in, manifests out.

Nothing here knows a client, a clock or a die, and nothing is decided about a job: that is the
plan's. The same order gives the same manifest, so whoever makes an object again after a crash makes
the same one.
"""

from weir_operator.manifests.config_map import config
from weir_operator.manifests.disposal_job import disposal_job
from weir_operator.manifests.disruption_budget import budget
from weir_operator.manifests.driver_attempt import DriverOrder
from weir_operator.manifests.driver_pod import driver_pod
from weir_operator.manifests.driver_service import service
from weir_operator.manifests.job_secret import keys
from weir_operator.manifests.network_policy import network_policy
from weir_operator.manifests.owner_reference import Manifest, Owner

__all__ = [
    "DriverOrder",
    "Manifest",
    "Owner",
    "budget",
    "config",
    "disposal_job",
    "driver_pod",
    "keys",
    "network_policy",
    "service",
]
