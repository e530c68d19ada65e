"""The driver of a job: carries out what the core decides, and tells it what came of it.

Nothing here decides anything about a checkpoint, an attempt or a restore. A loop action_runner events to
the core and its actions to whoever can act: slots, storage, sinks, sources, people.
"""
