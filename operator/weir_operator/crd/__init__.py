"""Generates the CRDs in ``crds/`` from the models of ``weir_operator.resource``.

``python -m weir_operator.crd crds`` writes them. Kubernetes supports only a part of JSON Schema, so
a model that cannot be expressed in it is an error here and not in a cluster.
"""
