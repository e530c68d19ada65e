"""Every field of the configuration is read by code that acts on it."""

import ast
import dataclasses
from pathlib import PurePosixPath

import pytest

from config_readers import models_in, unread_fields
from source_tree import PACKAGES, Module, modules
from weir.api import JobConfig
from weir.api.model import Model
from weir_operator.__main__ import OperatorSettings
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.pod_settings import EnvironmentVariable, Volume, VolumeMount
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec

HANDED_ON = {EnvironmentVariable, Volume, VolumeMount}
"""Parts of a pod, which the operator writes into the pod's manifest as they are."""


@pytest.fixture(scope="module")
def sources():
    return list(modules(*PACKAGES))


def test_every_configuration_field_has_a_reader(sources):
    """U3: a setting without effect would be a false promise."""
    models = models_in(JobConfig, CheckpointedJobSpec, CheckpointedJobSnapshotSpec)
    judged = {model: holders for model, holders in models.items() if model not in HANDED_ON}

    assert len(judged) > 10
    assert unread_fields(judged, sources) == []


def test_what_is_handed_on_is_written_into_manifests_as_a_whole(sources):
    """U3: so a field that Kubernetes knows needs no reader here."""
    (template,) = (one for one in sources if one.path.name == "pod_template.py")
    dumped = {
        node.func.value.id
        for node in template.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "model_dump"
    }

    assert dumped == {"variable", "volume", "mount"}


class Inner(Model):
    """A planted part of a configuration."""

    used: int = 0
    judged_only: int = 0
    named_elsewhere: int = 0
    asked_by_method: int = 0
    unread: int = 0

    def contradictions(self):
        return iter(range(self.judged_only))

    def doubled(self):
        return 2 * self.asked_by_method


class Outer(Model):
    """A planted configuration."""

    inner: Inner = Inner()
    kept: int = 0


PLANTED = {
    "runtime/weir/driver/one.py": "def f(config):\n    return config.inner.used + config.kept\n",
    "runtime/weir/driver/two.py": "def f(thing):\n    return thing.named_elsewhere\n",
    "runtime/weir/driver/three.py": "def f(given: Inner):\n    given.unread = given.doubled()\n",
    "runtime/weir/api/four.py": "def f(given: Inner):\n    return given.unread\n",
}


def test_a_planted_field_without_a_reader_is_found():
    """U3: it is neither enough to judge it, nor to assign it, nor to read its namesake."""
    planted = [Module(PurePosixPath(path), text) for path, text in PLANTED.items()]

    assert unread_fields(models_in(Outer), planted) == [
        "Inner.judged_only",
        "Inner.named_elsewhere",
        "Inner.unread",
    ]


def test_every_setting_of_the_operator_has_a_reader(sources):
    """U3: each flag of the command is read from the settings that it becomes."""
    (main,) = (one for one in sources if one.path == PurePosixPath(f"{PACKAGES[1]}/__main__.py"))
    read = {
        node.attr
        for node in main.nodes
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) in {"settings", "self._settings"}
    }

    assert {field.name for field in dataclasses.fields(OperatorSettings)} - read == set()
