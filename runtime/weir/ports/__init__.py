"""What the parts of a running job expect of each other, said once, with no part behind it.

A port is a protocol with its promises in words. Connectors, state and user code live on one side,
the slot and the driver on the other; neither imports the other, and a test's fake is as good as the
real thing.
"""
