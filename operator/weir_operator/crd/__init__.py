"""Makes the definitions in ``crds/`` from the models of ``weir_operator.resource``.

``python -m weir_operator.crd crds`` writes them. Kubernetes reads only a part of JSON Schema, so a
model that cannot be said in that part is an error here and not on somebody's cluster.
"""
