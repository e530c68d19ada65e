"""Joins the watches, the plan and the cluster: one look after the other, for each resource.

Kopf brings the events and nothing else. It does not keep our finalizer nor run a daemon for each
object, because after a restart it lets an object go that was deleted meanwhile without having
started its daemon, and the last savepoint of a job would be lost. Every look is level-triggered: it
reads what is, and may be repeated, missed or merged with others.
"""
