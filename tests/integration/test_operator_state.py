"""Lists, union lists and broadcast maps on real Spark processes lose nothing either."""

import os
import subprocess
import sys

import polars as pl

import ruled_rows
from real_job import SEARCHED
from real_processes import end_session
from ruled_rows import NARROW, ROWS, RULES, WIDE
from sum_oracle import committed
from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe
from weir.storage.objects import store_for

PATIENCE_S = 110
"""Far more than a quiet machine needs; a busy one takes long to start Spark."""


def test_operator_state_survives_the_death_of_a_slot_and_another_parallelism(tmp_path):
    """Spec S1, S11, A10, R1, R6: every row counts once, every subtask knows every rule once."""
    run_to_its_end(tmp_path)

    known = written(f"file://{tmp_path}/output")

    assert known["index"].sort().to_list() == list(range(WIDE))
    assert (known["rows"].sum(), known["total"].sum()) == (ROWS, total_of(ROWS))
    assert known["rules"].to_list() == [RULES // 2] * WIDE
    assert known["rule_total"].to_list() == [total_of(RULES)] * WIDE
    assert known["before"].to_list() == [NARROW] * WIDE


def run_to_its_end(home):
    with (home / "log").open("wb") as log:
        program = subprocess.Popen(
            [sys.executable, ruled_rows.__file__, home],
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(SEARCHED),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            start_new_session=True,
        )
    try:
        status = program.wait(timeout=PATIENCE_S)
    finally:
        end_session(program.pid)
        program.wait()
    assert status == 0, (home / "log").read_text(errors="replace")[-6_000:]


def written(output):
    store = store_for(output, {})
    files = [f"{output}/{name}" for name in committed(store, output)]
    return pl.concat(pl.read_parquet(store.read(file)) for file in files)


def total_of(rows):
    """The values of that many generated rows, whatever their order."""
    source = GeneratorSource(Recipe(), 2, rows)
    shares = [(split, source.share(split) or 0) for split in range(source.splits)]
    parts = [source.recipe.rows(split, 0, share) for split, share in shares]
    return sum(sum(part.column("value").to_pylist()) for part in parts)
