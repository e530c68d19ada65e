"""Helps to test jobs: recomputes the rows of the format ``generator`` without running a job.

A job that reads the generator can be checked from outside: every row is a function of its split
and its offset, so a test computes what the job must have seen and compares it with its output.
"""

from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_options import generator_source
from weir.dataflow.options import Options, OptionValue, as_text

__all__ = ["GeneratorSource", "generator"]


def generator(**options: OptionValue) -> GeneratorSource:
    """The source that ``readStream.format("generator").options(**options)`` reads."""
    given = Options("generator", {name: as_text(value) for name, value in options.items()})
    source = generator_source(given)
    given.refuse_unread()
    return source
