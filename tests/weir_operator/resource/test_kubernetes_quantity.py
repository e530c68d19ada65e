"""K2: amounts of Kubernetes are compared as Kubernetes would."""

import pytest
from pydantic import TypeAdapter, ValidationError

from weir_operator.resource.kubernetes_quantity import KubernetesQuantity, quantity_value

AMOUNT = TypeAdapter(KubernetesQuantity)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [("500m", "1"), ("1", "1.5"), ("1G", "1Gi"), ("1023Mi", "1Gi"), ("999999k", "1G"), ("1", "1k")],
)
def test_amounts_are_ordered_across_units(smaller, larger):
    assert quantity_value(smaller) < quantity_value(larger)


@pytest.mark.parametrize(("one", "other"), [("1024Mi", "1Gi"), ("1000m", "1"), ("2.0", "2")])
def test_an_amount_can_be_written_in_several_ways(one, other):
    assert quantity_value(one) == quantity_value(other)


@pytest.mark.parametrize("written", ["", "-1", "1 Gi", "1GiB", "one", 0.5, True, None])
def test_what_kubernetes_cannot_read_is_refused(written):
    with pytest.raises(ValidationError):
        AMOUNT.validate_python(written)
