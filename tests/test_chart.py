"""The chart, the plain manifests and the examples hold what they promise, as far as text can.

``manifests/install.yaml`` is the chart as Helm renders it, so it stands for the chart here, where
there is no Helm; that the two are in step is seen in ``e2e``, as is what happens in a cluster.
"""

import ast
import json
import re
import subprocess
import sys

import pytest
import yaml

import weir
from crd_admission import admit
from resource_reference import page
from source_tree import ROOT
from weir_operator.__main__ import read_settings
from weir_operator.cluster import api_paths
from weir_operator.controller.watch_probe import PROBE_CONFIG_MAP
from weir_operator.crd.definitions import job_definition
from weir_operator.resource.validation import Rejected, validate_job

CHART = ROOT / "helm" / "weir"
EXAMPLES = sorted(set((ROOT / "manifests").glob("*.yaml")) - {ROOT / "manifests" / "install.yaml"})
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
GUIDE = (ROOT / "docs" / "kubernetes.md").read_text()

SUBRESOURCES = {f"{kind.plural}/finalizers" for kind in (api_paths.JOBS, api_paths.SNAPSHOTS)} | {
    f"{kind.plural}/status" for kind in (api_paths.JOBS, api_paths.SNAPSHOTS)
}

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def installed(kind, suffix=""):
    found = documents(ROOT / "manifests" / "install.yaml")
    return [d for d in found if d["kind"] == kind and d["metadata"]["name"].endswith(suffix)]


def rules_of_the_operator():
    roles = [*installed("ClusterRole"), *installed("Role", "-lease")]
    return [rule for role in roles for rule in role["rules"]]


def the_operator():
    (deployment,) = installed("Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def parts(example):
    """The program's ConfigMap and the job."""
    program, job = documents(example)
    assert (program["kind"], job["kind"]) == ("ConfigMap", "CheckpointedJob")
    return program, job


# -- the chart


def closed_objects(values, schema, path="values"):
    """Every object whose fields the schema names, beside the values that there are."""
    if "properties" in schema:
        yield path, values, schema
        for name, value in values.items():
            yield from closed_objects(value, schema["properties"].get(name, {}), f"{path}.{name}")


def test_every_value_of_the_chart_is_known_to_its_schema_and_no_other():
    """K11: a value that was misspelt is refused, not passed over."""
    for path, values, schema in closed_objects(VALUES, SCHEMA):
        assert set(values) == set(schema["properties"]) - {"global"}, path
        assert schema["additionalProperties"] is False, path


def test_the_chart_has_no_definitions_of_its_own():
    """K11: they are those of crds/, as templates: Helm upgrades no crds/ of a chart."""
    assert (CHART / "definitions").resolve() == ROOT / "crds"
    assert not (CHART / "crds").exists()


def test_the_definitions_have_the_place_where_the_chart_says_that_they_stay():
    """K11: uninstalling must not delete every job; the template replaces this one line."""
    for definition in (CHART / "definitions").glob("*.yaml"):
        assert definition.read_text().count("\nmetadata:\n") == 1


def test_the_chart_has_the_version_of_the_project():
    """K11."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (weir.__version__, weir.__version__)


# -- what is installed


def test_the_operator_may_use_what_it_speaks_of_and_nothing_else():
    """K9: one page of the operator lists all kinds of objects that it asks for."""
    named = {
        api_resource.plural
        for api_resource in vars(api_paths).values()
        if isinstance(api_resource, api_paths.ApiResource)
    }

    allowed = {resource for rule in rules_of_the_operator() for resource in rule["resources"]}

    assert allowed == named | SUBRESOURCES


def test_no_permission_is_a_wildcard():
    """K9."""
    roles = installed("ClusterRole") + installed("Role")

    assert [r for role in roles for r in role["rules"] if "*" in json.dumps(r)] == []


def test_the_operator_cannot_list_secrets():
    """K9 X4: it gets those that it knows by name."""
    (rule,) = [rule for rule in rules_of_the_operator() if "secrets" in rule["resources"]]

    assert rule["verbs"] == ["get", "create"]


def test_a_driver_may_start_executors_and_not_ask_for_secrets():
    """K9 X4."""
    (role,) = installed("Role", "weir-driver")
    allowed = {kind: set(rule["verbs"]) for rule in role["rules"] for kind in rule["resources"]}

    assert allowed.keys() == {"pods", "configmaps", "persistentvolumeclaims"}
    assert allowed["pods"] >= {"create", "deletecollection"}
    assert "update" not in set.union(*allowed.values()), "what others have made is not replaced"


def test_the_operators_pod_is_hardened():
    """K9."""
    pod, container = the_operator()

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]


def test_the_operator_understands_how_it_is_started():
    """K9 K11: an unknown option is an error of its parser."""
    _, container = the_operator()
    *command, module = container["args"][:3]

    settings = read_settings(container["args"][3:])

    assert (command, module) == (["python3", "-m"], "weir_operator")
    assert settings.namespaces == ()
    assert settings.lost_after.total_seconds() == VALUES["nodeLostAfterSeconds"]
    assert {settings.health_port, settings.metrics_port} == {
        port["containerPort"] for port in container["ports"]
    }


def test_the_operator_may_feed_its_canary_and_no_other_map_is_changed_by_it():
    """K9."""
    named = [rule for rule in rules_of_the_operator() if "patch" in rule["verbs"]]
    (rule,) = [rule for rule in named if "configmaps" in rule["resources"]]

    assert rule["resourceNames"] == [PROBE_CONFIG_MAP]


def test_the_operator_is_asked_how_it_is():
    """K9."""
    _, container = the_operator()

    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_operators_network_policy_chooses_its_pod():
    """K9: a selector that chooses nothing would protect nothing."""
    (deployment,) = installed("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (policy,) = installed("NetworkPolicy", "weir-operator")

    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_operator_lets_itself_and_no_other_reach_the_api_of_drivers():
    """K9 X1: each job's NetworkPolicy is made of what the chart says here."""
    _, container = the_operator()
    (deployment,) = installed("Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]

    (peer,) = read_settings(container["args"][3:]).driver_peers

    home = {"kubernetes.io/metadata.name": deployment["metadata"]["namespace"]}
    assert peer["namespaceSelector"] == {"matchLabels": home}
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()


def test_no_policy_for_jobs_depends_on_a_list_of_namespaces():
    """K9: jobs are looked after in all of them."""
    assert [policy["metadata"]["name"] for policy in installed("NetworkPolicy")] == [
        "weir-operator"
    ]


def test_the_operator_can_neither_delete_nor_list_network_policies():
    """K9: those of others are no business of its."""
    (rule,) = [rule for rule in rules_of_the_operator() if "networkpolicies" in rule["resources"]]

    assert rule["verbs"] == ["get", "create", "patch"]


# -- the examples


@each_example
def test_an_example_is_a_job_that_can_be_run(example):
    """K1 K11."""
    _, job = parts(example)

    judged = validate_job(job["metadata"]["name"], job["spec"])

    assert not isinstance(judged, Rejected), judged


@each_example
def test_an_example_is_admitted_by_the_api_server(example):
    """K1 K11."""
    _, job = parts(example)

    admission = admit(job_definition(), {"metadata": job["metadata"], "spec": job["spec"]})

    assert admission.by_schema + admission.by_rule == ()


@each_example
def test_an_example_brings_the_program_that_it_names(example):
    """K11: one file is all that has to be applied."""
    program, job = parts(example)
    named = job["spec"]["job"]["configMap"]

    assert named["name"] == program["metadata"]["name"]
    assert named.get("key", "job.py") in program["data"]


@each_example
def test_an_example_keeps_its_state_and_output_in_a_place_of_its_own(example):
    """K11: all of them can run at once."""
    _, job = parts(example)
    urls = re.findall(r"s3://[^\"]+", json.dumps(job["spec"]))

    assert len(urls) == 3
    assert all(url.startswith(f"s3://weir/{example.stem}/") for url in urls)


@each_example
def test_an_example_gives_everything_with_state_a_uid(example):
    """K4 S10: so that a changed program finds its state again."""
    program, _ = parts(example)
    calls = [node for node in ast.walk(ast.parse(program["data"]["job.py"])) if is_a_uid(node)]

    assert len(calls) == 3


def is_a_uid(node):
    match node:
        case ast.Call(ast.Attribute(_, "uid")):
            return True
    return False


@pytest.mark.timeout(180)
@each_example
def test_the_program_of_an_example_runs_on_one_machine_too(example, tmp_path):
    """D5 R6: the same file, without a cluster, and its result is there."""
    program, _ = parts(example)
    script = tmp_path / "job.py"
    script.write_text(program["data"]["job.py"])
    unhurried, output = "0", tmp_path / "output"

    done = subprocess.run(
        [sys.executable, script, "2000", unhurried, output],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert list(output.glob("*.parquet"))


# -- the guide


def test_every_file_that_the_guide_applies_is_there():
    """K11 U3."""
    named = re.findall(r"(?:-f|--install weir) ([\w./-]+)", GUIDE)

    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_job_that_the_guide_speaks_of_is_an_example():
    """K11 U3."""
    named = set(re.findall(r"checkpointedjob[ /]([a-z][\w-]+)", GUIDE))

    assert named == {"running-sums"}
    assert named <= {path.stem for path in EXAMPLES}


def test_every_value_that_the_guide_sets_is_one_of_the_chart():
    """K11 U3."""
    named = re.findall(r"--set '?([a-zA-Z.]+)=", GUIDE)

    assert named
    assert set(named) <= set(VALUES)


def test_the_page_of_fields_is_that_of_the_definitions(request):
    """K1 U3: `./dev test tests/test_chart.py --rewrite` brings it into step."""
    file = ROOT / "docs" / "resource.md"
    if request.config.getoption("--rewrite"):
        file.write_text(page())

    assert file.read_text() == page()
