"""The driver of a job: carries out the core's actions and reports the results as events.

Nothing here decides anything about a checkpoint, an attempt or a restore. A loop passes events to
the core, and the core's actions to slots, storage, sinks, sources and users.
"""
