"""Keeps the state of operators in memory and lays it down in Arrow files, by key group.

Nothing here knows where a file is stored, who asked for a snapshot, or what a barrier is.
"""
