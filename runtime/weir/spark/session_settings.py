"""The settings of Spark that slots depend on, and where those of a job come from.

A script writes a job's settings in Spark's flat form, for the place where it was made. An operator
writes them into a file, which then stands for all of them; a command line overrides single ones.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from weir.api.environment_variables import (
    WEIR_ALLOW_NON_RESTORED_STATE,
    WEIR_CLAIM,
    WEIR_CONFIG,
    WEIR_FROM,
    WEIR_MASTER,
    WEIR_PARALLELISM,
)
from weir.driver.driver_environment import DriverEnvironment
from weir.errors import JobRejected
from weir.storage.stores import as_url

log = logging.getLogger("weir.spark")

OWN_CORES = 2
"""Cores beside the slots for Spark's own jobs: slots hold theirs for good."""

FOR_SLOTS = {
    "spark.python.daemon.module": "weir.daemon",
    "spark.python.worker.reuse": "false",
    "spark.task.maxFailures": "2147483647",
    "spark.executor.maxNumFailures": "2147483647",
    "spark.locality.wait": "0s",
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.excludeOnFailure.enabled": "false",
    "spark.kubernetes.allocation.recoveryMode.enabled": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""A slot that dies must come back, on the spot and for ever; Weir says so, in fewer words. After a
SIGKILL Spark's recovery mode would give a new executor one core, where no slot finds room."""

FROM_ENVIRONMENT = {
    WEIR_PARALLELISM: "parallelism",
    WEIR_FROM: "recovery.path",
    WEIR_CLAIM: "recovery.claimMode",
    WEIR_ALLOW_NON_RESTORED_STATE: "recovery.allowNonRestoredState",
}

PATHS = ("checkpointing.storage", "checkpointing.savepointDir", "recovery.path")
"""Settings that name a directory: a URL, or a path of this machine."""

TAKE_OVER, RERUN = START_SETTINGS = ("takeOver", "rerun")
"""Settings of a script that are about one start and no part of the job's configuration."""

LOGGING = Path(__file__).resolve().parent / "log4j2.properties"
"""Shows the errors of a JVM that starts; it comes before the user's own Java options, which win."""

ONE_THREAD = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS")
"""Parallelism comes from slots; a library's own threads would only fight with theirs."""


def spark_settings(slots: int, source: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Ours, then the user's, which win."""
    paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {
        "spark.master": os.environ.get(WEIR_MASTER) or f"local[{slots + OWN_CORES},1000]",
        **FOR_SLOTS,
        **_quiet_start(os.environ),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(paths),
        **{f"spark.executorEnv.{variable}": "1" for variable in ONE_THREAD},
    }
    return {**settings, **given}


def _quiet_start(variables: Mapping[str, str]) -> dict[str, str]:
    """The JVM's own logging, unless the user has configured it for all of Spark.

    An operator gives its drivers Java options of the same name, which start them from an archive of
    classes; a setting made here would replace them.
    """
    if variables.get(WEIR_MASTER):
        return {}
    home = variables.get("SPARK_HOME")
    place = variables.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    if place and any(Path(place).glob("log4j2.*")):
        return {}
    return {"spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"}


def job_settings(script: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, object]:
    """The settings of a job as a tree: of a file if one is named, else of the script."""
    wished = from_environment(variables)
    place = variables.get(WEIR_CONFIG)
    if not place:
        paths = {name: as_url(script[name]) for name in PATHS if name in script}
        return nested({**script, **paths, **wished})
    if script:
        names = ", ".join(f"weir.{name}" for name in sorted(script))
        log.warning("%s has the job's settings, so the script's are not used: %s", place, names)
    return _over(_read(Path(place)), nested(wished))


def with_start_settings(
    assignment: DriverEnvironment, script: Mapping[str, str]
) -> DriverEnvironment:
    """The assignment with the start settings of the script."""
    given = {name: _typed(script.get(name, "false")) for name in START_SETTINGS}
    for name, value in given.items():
        if not isinstance(value, bool):
            raise JobRejected(
                f"weir.{name} = {script[name][:40]} is not allowed",
                "it is neither true nor false",
                "use true or false",
            )
    return replace(
        assignment,
        takes_over=assignment.takes_over or bool(given[TAKE_OVER]),
        reruns=assignment.reruns or bool(given[RERUN]),
    )


def without_start_settings(script: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in script.items() if name not in START_SETTINGS}


def _read(place: Path) -> dict[str, object]:
    try:
        settings = json.loads(place.read_bytes())
    except (OSError, ValueError) as problem:
        raise JobRejected(
            f"{WEIR_CONFIG}: the job's settings cannot be read from {place}",
            str(problem),
            f"let {WEIR_CONFIG} name a file with a JSON object in it",
        ) from problem
    if not isinstance(settings, dict):
        raise JobRejected(
            f"{WEIR_CONFIG}: {place} has no settings",
            "it holds no JSON object",
            "write the job's settings as one",
        )
    return settings


def _over(tree: Mapping[str, object], other: Mapping[str, object]) -> dict[str, object]:
    """The first with every setting of the other, group by group."""
    merged = dict(tree)
    for name, value in other.items():
        below = tree.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[name] = _over(below, value)
        else:
            merged[name] = value
    return merged


def from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The settings of the command line, which override those of the script."""
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
        f"weir.{key} contradicts another setting",
        f"{name} is given as a setting and as a group of settings",
        "remove one of them",
    )


def _typed(text: str) -> object:
    """A setting with its type: Spark's settings are text, which is typed here as in YAML."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
