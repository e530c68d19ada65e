"""The protocols between the parts of a running job, without an implementation.

A port is a protocol with a documented contract. Connectors, state and user code live on one side,
the slot and the driver on the other; neither imports the other, and a test's fake is as good as the
real thing.
"""
