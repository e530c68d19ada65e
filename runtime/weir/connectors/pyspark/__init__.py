"""Runs classes that users wrote for PySpark, unchanged, behind Weir's ports."""
