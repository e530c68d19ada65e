"""The built-in sources and sinks, which implement the ports.

A connector knows files, formats and schedules, and nothing of barriers, attempts or slots: the
runtime calls it through the ports to seal, to commit and to restore.
"""
