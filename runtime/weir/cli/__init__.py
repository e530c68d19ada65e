"""The command ``weir``: runs a job on this machine, and controls running jobs.

It uses a job's API alone, so it does not matter whether the job runs in this process, in another
one or in a pod.
"""
