"""The controller: informers, work queues and the reconcilers of both custom resources.

Kopf delivers events and nothing else. It neither manages the finalizer nor runs a daemon for each
object: after a restart Kopf releases an object that was deleted in the meantime without having
started its daemon, and the last savepoint of the job would be lost. Every reconcile is
level-triggered: it reads the current state, and may be repeated, skipped or merged with others.
"""
