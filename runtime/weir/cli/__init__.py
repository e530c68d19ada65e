"""The command ``weir``: runs a job on this machine, and talks to jobs that run.

It knows a job by its API alone, so a job in another process, in a pod or in this very process is
the same to it.
"""
