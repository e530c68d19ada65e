"""How many executors a job has, and how the memory of a pod is shared between Java and Python.

State and user code live in Python, so Java gets the smaller part of an executor and a third of a
driver. Spark makes the memory of an executor's pod of two numbers, heap and overhead; they are
chosen so that their sum is what the user wrote. Where that would be too little for Spark to start
at all, the pod is as large as it must be.
"""

import re

from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.kubernetes_quantity import exactly
from weir_operator.resource.pod_settings import PodShape, Resources

MEBIBYTE = 1 << 20

LEAST_HEAP_MIB = 512
"""Spark keeps 300 MiB for itself and refuses to start with less than one and a half times that."""

LEAST_OVERHEAD_MIB = 384
"""What Spark itself adds to the smallest heap."""

EXECUTORS_HEAP = 5
DRIVERS_HEAP = 3
"""One part in so many of the memory is Java's heap."""

_UNITS_MIB = {"": 1.0, "b": 2.0**-20, "k": 2.0**-10, "m": 1.0, "g": 2.0**10, "t": 2.0**20}


def executors(spec: CheckpointedJobSpec) -> int:
    """As many as have a slot for every subtask of an operator, and the spare ones."""
    return -(-(spec.parallelism + spec.standby_slots) // spec.slots_per_executor)


def memory_mib(resources: Resources) -> int:
    """What a container may use: its limit, or else its request, or else the default."""
    default = PodShape().resources.limits["memory"]
    amount = resources.limits.get("memory") or resources.requests.get("memory") or default
    return int(exactly(amount)) // MEBIBYTE


def heap_mib(memory: int, one_in: int) -> int:
    return max(memory // one_in, LEAST_HEAP_MIB)


def overhead_mib(memory: int, heap: int) -> int:
    return max(memory - heap, LEAST_OVERHEAD_MIB)


def read_mib(size: str) -> int | None:
    """A size in Spark's notation, in which 512 and 512m are the same; nothing if it is none."""
    parts = re.fullmatch(r"([0-9]{1,15})([bkmgt]?)b?", size.strip().lower())
    return None if parts is None else int(int(parts[1]) * _UNITS_MIB[parts[2]])
