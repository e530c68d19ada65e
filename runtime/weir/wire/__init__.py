"""How driver and slots speak to each other: values as JSON, frames, and the links that carry them.

What is said is the core's vocabulary; what it means is decided by whoever listens.
"""
