"""Decides everything a checkpoint's correctness depends on; performs none of it.

Every module here is values and functions: what happened goes in, what to do comes out. Nothing in
this package reads a clock, draws a random number, opens a file or socket, starts a thread or writes
a log line; such things arrive as data in events and leave as actions. That is what lets thousands
of fault schedules run through the very code that a cluster runs.

Where a set is walked, it is sorted first: two runs of one history must be equal to the letter.
"""
