"""The settings of Spark that slots depend on, and how ours are written in Spark's flat form."""

import os
from collections.abc import Mapping
from pathlib import Path

from weir.errors import JobRejected
from weir.storage.objects import as_url

OWN_CORES = 2
"""Cores beside the slots for Spark's own jobs: slots hold theirs for good."""

FOR_SLOTS = {
    "spark.python.daemon.module": "weir.spark.daemon",
    "spark.python.worker.reuse": "false",
    "spark.task.maxFailures": "2147483647",
    "spark.executor.maxNumFailures": "2147483647",
    "spark.locality.wait": "0s",
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.excludeOnFailure.enabled": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""A slot that dies must come back, on the spot and for ever; Weir says so, in fewer words."""

FROM_ENVIRONMENT = {
    "WEIR_PARALLELISM": "parallelism",
    "WEIR_FROM": "recovery.path",
    "WEIR_CLAIM": "recovery.claimMode",
    "WEIR_ALLOW_NON_RESTORED_STATE": "recovery.allowNonRestoredState",
}

MASTER = "WEIR_MASTER"
"""Where Spark finds machines, as in k8s://https://kubernetes.default.svc; if it is not set, it is
this one."""

ONE_THREAD = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS")
"""Parallelism comes from slots; a library's own threads would only fight with theirs."""


def spark_settings(slots: int, source: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Ours, then the user's, which win."""
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {
        "spark.master": os.environ.get(MASTER) or f"local[{slots + OWN_CORES},1000]",
        **FOR_SLOTS,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(paths),
        **{f"spark.executorEnv.{variable}": "1" for variable in ONE_THREAD},
    }
    return {**settings, **given}


def from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What the command line says; it wins over what the script says."""
    given = {setting: variables.get(name, "") for name, setting in FROM_ENVIRONMENT.items()}
    given["recovery.path"] = as_url(given["recovery.path"])
    if given["recovery.claimMode"]:
        given["recovery.claimMode"] = "CLAIM"
    return {setting: value for setting, value in given.items() if value}


def nested(flat: Mapping[str, str]) -> dict[str, object]:
    """``checkpointing.interval`` is the interval of the group checkpointing; numbers are read."""
    tree: dict[str, object] = {}
    for key, value in flat.items():
        *path, leaf = key.split(".")
        place = tree
        for part in path:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                raise _both(key, part)
            place = inner
        if leaf in place:
            raise _both(key, leaf)
        place[leaf] = _typed(value)
    return tree


def _both(key: str, name: str) -> JobRejected:
    return JobRejected(
        f"weir.{key}: {name} is given as a setting and as a group of settings; remove one of them"
    )


def _typed(text: str) -> object:
    """Spark's settings are text; ours are told apart as YAML would."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
