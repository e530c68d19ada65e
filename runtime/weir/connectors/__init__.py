"""The adapters between the outside and the ports: what a job reads from and writes to.

A connector knows files, formats and schedules, and nothing of barriers, attempts or slots: the
ports tell it when to seal, to commit and to begin anew.
"""
