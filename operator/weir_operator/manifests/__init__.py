"""The objects that the operator makes, as data: values in, manifests out.

Nothing here knows a client, a clock or a die, and nothing is decided about a job: that is the
plan's. The same order gives the same manifest, so whoever makes an object again after a crash makes
the same one.
"""

from weir_operator.manifests.configuration import config
from weir_operator.manifests.disposal import disposal_job
from weir_operator.manifests.driver import driver_pod
from weir_operator.manifests.driver_service import service
from weir_operator.manifests.executor_budget import budget
from weir_operator.manifests.job_keys import keys
from weir_operator.manifests.network_policy import network_policy
from weir_operator.manifests.order import DriverOrder
from weir_operator.manifests.ownership import Manifest, Owner

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
