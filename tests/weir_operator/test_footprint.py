"""What the operator does not need: no JVM, and no mutating webhook."""

import subprocess
import sys

import yaml

from source_tree import ROOT

INSTALLED = list(yaml.safe_load_all((ROOT / "manifests" / "install.yaml").read_text()))


def test_the_operator_needs_no_spark():
    """K2: it makes pods itself, so nothing that it imports could start a JVM."""
    code = (
        "import sys, weir_operator.__main__, weir_operator.crd.__main__;"
        "print(*sorted({'pyspark', 'py4j', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout.strip() == ""


def test_no_webhook_stands_between_users_and_what_they_write():
    """K9: the API server stores what a user wrote, with the defaults of the schema."""
    kinds = {document["kind"] for document in INSTALLED if document}
    groups = {
        group
        for document in INSTALLED
        if document
        for rule in document.get("rules") or ()
        for group in rule.get("apiGroups") or ()
    }
    chart = "".join(path.read_text() for path in (ROOT / "helm" / "weir" / "templates").iterdir())

    assert not {kind for kind in kinds if "Webhook" in kind}
    assert "admissionregistration.k8s.io" not in groups | set(chart.split())
    assert "WebhookConfiguration" not in chart
