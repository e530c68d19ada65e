"""The definitions in ``crds/`` are those of the models, and Kubernetes can read them."""

import re
from collections.abc import Iterator

import pytest

from crd_admission import admit
from source_tree import ROOT
from weir_operator.crd.definitions import files, job_definition, snapshot_definition

DEFINITIONS = {"job": job_definition(), "snapshot": snapshot_definition()}
FILES = files()
FORBIDDEN = {"$ref", "$defs", "anyOf", "allOf", "oneOf", "not", "nullable", "title", "const"}

of_both = pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS.keys())


def version(definition):
    (only,) = definition["spec"]["versions"]
    return only


def schema_of(definition):
    return version(definition)["schema"]["openAPIV3Schema"]


def nodes(schema, path="") -> Iterator[tuple[str, dict]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_made_from_the_models(name):
    """K1: `python -m weir_operator.crd crds` brings them into step."""
    assert (ROOT / "crds" / name).read_text(encoding="utf-8") == FILES[name]


def test_there_is_no_other_file():
    """K1: a definition that is no longer generated is not installed."""
    assert {path.name for path in (ROOT / "crds").iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_definition_is_small(name):
    """K1: `kubectl apply` keeps a second copy in an annotation, which has room for 256 KiB."""
    assert len(FILES[name].encode()) < 100_000


@of_both
def test_every_field_is_described(definition):
    """K1: ``kubectl explain`` has something to say about each, in sentences."""
    described = {
        path: node.get("description", "")
        for path, node in nodes(schema_of(definition))
        if not path.endswith("[]")
    }

    assert [path for path, text in described.items() if not re.search(r"\w.*\.$", text)] == []


@of_both
def test_a_default_is_said_in_words(definition):
    """K1: ``kubectl explain`` shows only the description."""
    for path, node in nodes(schema_of(definition)):
        if isinstance(node.get("default"), str | int | float):
            shown = str(node["default"])
            shown = shown.lower() if isinstance(node["default"], bool) else shown
            assert node["description"].endswith(f"Default: {shown}."), path


@of_both
def test_the_schema_is_structural(definition):
    """K1: one type for each field, and none of the words that Kubernetes refuses."""
    for path, node in nodes(schema_of(definition)):
        assert not FORBIDDEN & node.keys(), path
        assert "type" in node or node["x-kubernetes-int-or-string"], path
        assert not ("properties" in node and "additionalProperties" in node), path


@of_both
def test_everything_has_a_limit(definition):
    """K1: or the cost of a rule about it could not be estimated."""
    for path, node in nodes(schema_of(definition)):
        match node.get("type"):
            case "string":
                assert {"maxLength", "enum", "format"} & node.keys(), path
            case "array":
                assert "maxItems" in node, path
            case "object":
                assert "additionalProperties" not in node or "maxProperties" in node, path


@of_both
def test_the_map_keys_of_a_list_are_required_fields(definition):
    """K1: the key of a list that is merged is always there."""
    for path, node in nodes(schema_of(definition)):
        keys = node.get("x-kubernetes-list-map-keys", [])
        assert set(keys) <= set(node.get("items", {}).get("required", [])), path


@of_both
def test_no_rule_stands_twice_at_one_place(definition):
    """K1: server-side apply tells rules apart by their text."""
    for path, node in nodes(schema_of(definition)):
        rules = [rule["rule"] for rule in node.get("x-kubernetes-validations", [])]
        assert len(set(rules)) == len(rules), path


@of_both
def test_a_rule_blames_a_field_that_is_there(definition):
    """K1: the API server refuses a definition that blames another."""
    for _, node in nodes(schema_of(definition)):
        for rule in node.get("x-kubernetes-validations", []):
            place = node
            for name in rule.get("fieldPath", "").split(".")[1:]:
                place = place["properties"][name]
            assert "\n" not in rule["message"]


def test_what_is_filled_in_can_be_run():
    """K1: the defaults, written out in full, break no schema and no rule."""
    given = {
        "metadata": {"name": "orders"},
        "spec": {
            "image": "localhost/weir:dev",
            "job": {"file": "/opt/job.py"},
            "upgrade": {"mode": "stateless"},
        },
    }

    admission = admit(DEFINITIONS["job"], given)

    assert (admission.by_schema, admission.by_rule) == ((), ())
    spec = schema_of(DEFINITIONS["job"])["properties"]["spec"]["properties"]
    assert spec["checkpointing"]["default"].keys() > {"interval", "timeout", "retained"}


def test_a_pod_template_is_left_to_kubernetes():
    """K1: its schema alone would have hundreds of kilobytes."""
    spec = schema_of(DEFINITIONS["job"])["properties"]["spec"]["properties"]

    for role in ("driver", "executor"):
        template = spec[role]["properties"]["podTemplate"]
        assert template["x-kubernetes-preserve-unknown-fields"] is True
        assert "properties" not in template


def columns(definition):
    return [column["name"] for column in version(definition)["additionalPrinterColumns"]]


def test_a_list_of_jobs_shows_what_matters():
    """K7, U2: the state, the age of the newest checkpoint and savepoint, the restarts."""
    assert columns(DEFINITIONS["job"])[:6] == [
        "State",
        "Checkpoint",
        "Checkpoint Age",
        "Savepoint Age",
        "Restarts",
        "Age",
    ]


@of_both
def test_a_column_shows_a_field_that_is_there(definition):
    """K7: a misspelt path would show nothing, for ever."""
    fields = {path for path, _ in nodes(schema_of(definition))} | {".metadata.creationTimestamp"}

    for column in version(definition)["additionalPrinterColumns"]:
        assert column["jsonPath"] in fields


def test_a_job_can_be_scaled():
    """K6: an autoscaler counts the parallelism."""
    subresources = version(DEFINITIONS["job"])["subresources"]
    fields = {path for path, _ in nodes(schema_of(DEFINITIONS["job"]))}

    assert subresources["status"] == {}
    assert subresources["scale"]["specReplicasPath"] == ".spec.parallelism"
    assert set(subresources["scale"].values()) <= fields


def test_the_resources_have_short_names():
    """K1, U2."""
    names = [definition["spec"]["names"]["shortNames"] for definition in DEFINITIONS.values()]

    assert names == [["cpj"], ["cpjs"]]
