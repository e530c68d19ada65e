"""Runs subtasks inside a slot: the Python process of a Spark task, which outlives attempts."""
