"""Runs whole jobs under a seeded clock, with faults, against the production core."""
