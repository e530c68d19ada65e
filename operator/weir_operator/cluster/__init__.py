"""Reads and changes the cluster: the only package that calls the API server.

It translates objects of the API server into values of the plan, and actions of a plan into
requests. It decides nothing and caches only what can be read again. Every request can be repeated
and has a timeout; ``api_requests`` classifies all errors.
"""
