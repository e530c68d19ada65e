"""A template is laid over a pod by name, and loses nothing of it."""

from hypothesis import given
from hypothesis import strategies as st

from weir_operator.manifests.strategic_merge import strategic_merge

NAMES = st.sampled_from("abc")
VALUES = st.one_of(st.integers(0, 2), st.none(), st.lists(st.integers(0, 2), max_size=2))
MAPPINGS = st.dictionaries(NAMES, VALUES, max_size=2)


def lists_of(elements, key):
    return st.lists(elements, max_size=3, unique_by=lambda element: element[key])


VARIABLES = st.fixed_dictionaries({"name": NAMES}, optional={"value": NAMES, "valueFrom": MAPPINGS})
MOUNTS = st.fixed_dictionaries({"mountPath": NAMES}, optional={"name": NAMES})
SOURCES = st.lists(st.fixed_dictionaries({"secretRef": NAMES}), max_size=2)
CONTAINERS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "env": lists_of(VARIABLES, "name"),
        "envFrom": SOURCES,
        "volumeMounts": lists_of(MOUNTS, "mountPath"),
        "securityContext": MAPPINGS,
        "args": st.lists(NAMES, max_size=2),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "containers": lists_of(CONTAINERS, "name"),
        "initContainers": lists_of(CONTAINERS, "name"),
        "volumes": lists_of(VARIABLES, "name"),
        "nodeSelector": MAPPINGS,
        "tolerations": st.lists(MAPPINGS, max_size=2),
    },
)


def names(spec, field):
    return {element["name"] for element in spec.get(field, [])}


@given(SPECS, SPECS)
def test_what_was_laid_over_once_changes_nothing_the_second_time(below, above):
    """K3: a manifest that is made again is the same."""
    once = strategic_merge(below, above)

    assert strategic_merge(once, above) == once


@given(SPECS, SPECS)
def test_no_container_and_no_volume_is_lost(below, above):
    """K2: neither ours nor the user's."""
    merged = strategic_merge(below, above)

    for field in ("containers", "initContainers", "volumes"):
        assert names(merged, field) == names(below, field) | names(above, field)


@given(SPECS)
def test_nothing_over_a_pod_is_the_pod(spec):
    """K2."""
    assert strategic_merge(spec, {}) == strategic_merge({}, spec) == spec


def test_a_container_is_merged_into_its_namesake():
    """K2: so that a template can say a little about ours, and add another."""
    below = {"containers": [{"name": "driver", "image": "weir", "tty": False}]}
    above = {"containers": [{"name": "logs", "image": "fluent"}, {"name": "driver", "tty": True}]}

    assert strategic_merge(below, above) == {
        "containers": [
            {"name": "driver", "image": "weir", "tty": True},
            {"name": "logs", "image": "fluent"},
        ]
    }


def test_a_volume_takes_the_place_of_its_namesake():
    """K2: one with two sources would be refused."""
    below = {"volumes": [{"name": "data", "emptyDir": {}}]}
    above = {"volumes": [{"name": "data", "hostPath": {"path": "/data"}}]}

    assert strategic_merge(below, above) == above


def test_a_mount_takes_the_place_of_the_one_at_its_path():
    """K2: two at one path would be refused."""
    below = {"volumeMounts": [{"name": "scratch", "mountPath": "/data"}]}
    above = {"volumeMounts": [{"name": "disk", "mountPath": "/data"}]}

    assert strategic_merge(below, above) == above


def test_sources_of_variables_are_joined():
    """K2: a template's Secret does not push out those of the storage."""
    below, above = {"envFrom": [{"secretRef": "s3"}]}, {"envFrom": [{"secretRef": "mail"}]}

    assert strategic_merge(below, above) == {
        "envFrom": [{"secretRef": "s3"}, {"secretRef": "mail"}]
    }


def test_any_other_list_is_replaced():
    """K2: half of two orders would be neither."""
    assert strategic_merge({"tolerations": [1, 2]}, {"tolerations": [3]}) == {"tolerations": [3]}
