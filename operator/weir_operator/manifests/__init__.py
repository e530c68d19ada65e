"""Builds the manifests of all objects that the operator creates.

Nothing here makes requests, reads a clock or draws random numbers, and nothing is decided about a
job. The same input gives the same manifest, so an object that is created again after a crash is
identical.
"""

from weir_operator.manifests.config_map import config
from weir_operator.manifests.disposal_job import disposal_job
from weir_operator.manifests.disruption_budget import budget
from weir_operator.manifests.driver_attempt import DriverAttempt
from weir_operator.manifests.driver_pod import driver_pod
from weir_operator.manifests.driver_service import service
from weir_operator.manifests.job_secret import keys
from weir_operator.manifests.network_policy import network_policy
from weir_operator.manifests.owner_reference import Manifest, Owner

__all__ = [
    "DriverAttempt",
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
