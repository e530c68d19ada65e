"""The lock pins, with hashes and no address, what ``pyproject.toml`` asks for."""

import re
import tomllib

from packaging.requirements import Requirement

from source_tree import ROOT

LOCK = (ROOT / "requirements" / "dev.txt").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned():
    pins = re.findall(r"^([a-z0-9-]+)==([^ ]+)", LOCK, re.MULTILINE)
    versions = {}
    for name, version in pins:
        versions.setdefault(name, []).append(version)
    return versions


def test_every_dependency_is_pinned_within_its_range():
    versions = pinned()
    asked = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["dev"]]
    for requirement in map(Requirement, asked):
        assert requirement.name in versions, "run ./dev lock"
        for version in versions[requirement.name]:
            assert requirement.specifier.contains(version), f"{requirement}: run ./dev lock"


def test_every_pin_has_a_hash():
    entries = re.split(r"\n(?=[a-z0-9])", LOCK.split("\n", 2)[2])
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_no_address_is_recorded():
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "--find-links" not in LOCK
