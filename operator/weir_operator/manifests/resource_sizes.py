"""The number of executors of a job, and how a pod's memory is split between Java and Python.

State and user code are in Python, so Java gets the smaller part of an executor and a third of a
driver. Spark computes the memory of an executor's pod from two numbers, heap and overhead; they are
chosen so that their sum is what the user wrote. If that is too little for Spark to start, the pod
gets the minimum.
"""

import re

from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.kubernetes_quantity import quantity_value
from weir_operator.resource.pod_settings import PodSettings, Resources

MEBIBYTE = 1 << 20

LEAST_HEAP_MIB = 512
"""Spark reserves 300 MiB and does not start with less than one and a half times that."""

LEAST_OVERHEAD_MIB = 384
"""The overhead that Spark itself adds to the smallest heap."""

EXECUTORS_HEAP = 5
DRIVERS_HEAP = 3
"""The memory divided by this number is Java's heap."""

_UNITS_MIB = {"": 1.0, "b": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}


def executors(spec: CheckpointedJobSpec) -> int:
    """Enough for a slot for every subtask of an operator, and the standby slots."""
    return -(-(spec.parallelism + spec.standby_slots) // spec.slots_per_executor)


def memory_mib(resources: Resources) -> int:
    """The memory of a container: its limit, or else its request, or else the default."""
    default = PodSettings().resources.limits["memory"]
    amount = resources.limits.get("memory") or resources.requests.get("memory") or default
    return int(quantity_value(amount)) // MEBIBYTE


def heap_mib(memory: int, one_in: int) -> int:
    return max(memory // one_in, LEAST_HEAP_MIB)


def overhead_mib(memory: int, heap: int) -> int:
    return max(memory - heap, LEAST_OVERHEAD_MIB)


def read_mib(size: str) -> int | None:
    """A size in Spark's notation, in which 512 and 512m are the same; none if it is invalid."""
    parts = re.fullmatch(r"([0-9]{1,15})([bkmgt]?)b?", size.strip().lower())
    return None if parts is None else int(int(parts[1]) * _UNITS_MIB[parts[2]])
