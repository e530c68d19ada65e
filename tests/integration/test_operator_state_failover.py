"""Lists, union lists and broadcast maps on real Spark processes lose nothing either."""

import polars as pl

import operator_state_job
from operator_state_job import NARROW, ROWS, RULES, WIDE
from spark_program import run_program
from sum_oracle import committed_frames
from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe


def test_operator_state_survives_the_death_of_a_slot_and_another_parallelism(tmp_path):
    """S1, S11, A10, R1, R6: every row counts once, every subtask knows every rule once."""
    run_program(operator_state_job.__file__, tmp_path)

    known = pl.concat(committed_frames(f"file://{tmp_path}/output", {}))

    assert known["index"].sort().to_list() == list(range(WIDE))
    assert (known["rows"].sum(), known["total"].sum()) == (ROWS, total_of(ROWS))
    assert known["rules"].to_list() == [RULES // 2] * WIDE
    assert known["rule_total"].to_list() == [total_of(RULES)] * WIDE
    assert known["before"].to_list() == [NARROW] * WIDE


def total_of(rows):
    """The values of that many generated rows, whatever their order."""
    source = GeneratorSource(Recipe(), 2, rows)
    shares = [(split, source.share(split) or 0) for split in range(source.splits)]
    parts = [source.recipe.rows(split, 0, share) for split, share in shares]
    return sum(sum(part.column("value").to_pylist()) for part in parts)
