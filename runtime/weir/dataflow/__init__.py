"""What a user writes, in PySpark's words, and the graph of stages that it becomes.

Building a graph opens no file and starts no process: whatever is wrong with it is said here, before
anything runs. A job file imports ``functions`` from ``weir``; the rest hangs on the session's
``readStream``.
"""
