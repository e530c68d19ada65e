"""Sees and changes the cluster: the only package that speaks to the API server.

It translates: what the API server shows becomes values of the plan, and what a plan decided becomes
calls. It decides nothing and remembers only what can be read again. Every call can be repeated, has
a timeout, and its errors are sorted in one place (``answers``).
"""
