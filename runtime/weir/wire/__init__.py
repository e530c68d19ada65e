"""Communication between driver and slots: values as JSON, frames, and the links that carry them.

The messages are the core's vocabulary; the receiver decides what they mean.
"""
