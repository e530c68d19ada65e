"""What a test chooses about the real job that it runs, and how that reaches the job's process."""

import json
import random
from dataclasses import asdict, dataclass, replace
from typing import Self

EXACTLY_ONCE = "EXACTLY_ONCE"
AT_LEAST_ONCE = "AT_LEAST_ONCE"

QUICK_RESTARTS = (("weir.restart.initialBackoff", "100 ms"), ("weir.restart.maxBackoff", "200 ms"))

SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Half the time to start: what a test runs is over before better code would pay."""

NAME = "sums"


@dataclass(frozen=True, slots=True)
class JobSetting:
    """One job: running sums of generated rows, from a generator into Parquet files."""

    checkpoints: str
    output: str
    rows: int = 60_000
    rate: int = 20_000
    """Rows a second; zero: as fast as they can."""
    splits: int = 2
    keys: int = 500
    parallelism: int = 2
    mode: str = EXACTLY_ONCE
    interval_ms: int = 400
    deployment: str = "first"
    poisoned_offset: int = -1
    """The processor raises when it sees this offset of split 0; -1: never."""
    is_poisoned_once: bool = False
    is_hesitant: bool = False
    """Behind the sums there is a step that is too slow half of the time."""
    config: tuple[tuple[str, str], ...] = QUICK_RESTARTS

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        given = json.loads(text)
        given["config"] = tuple((key, value) for key, value in given["config"])
        return cls(**given)

    def having(self, *more: tuple[str, str]) -> Self:
        """The same, with these settings of the session too."""
        return replace(self, config=(*self.config, *more))

    @property
    def directory(self) -> str:
        """Where the job keeps its log and its checkpoints."""
        return f"{self.checkpoints}/{NAME}"

    def varied(self, dice: random.Random) -> Self:
        """Another job to which the same promises are made."""
        return (
            replace(
                self,
                splits=dice.choice((2, 3)),
                keys=dice.choice((50, 500, 3_000)),
                interval_ms=dice.choice((300, 400, 500)),
            )
            .having(
                ("weir.checkpointing.inlineThreshold", dice.choice(("0 B", "20 KiB"))),
                ("weir.checkpointing.incremental", dice.choice(("false", "true"))),
                ("weir.state.localRecovery", dice.choice(("false", "true"))),
                ("weir.state.backend", dice.choice(("hashmap", "rocksdb"))),
            )
            .merging(dice)
        )

    def merging(self, dice: random.Random) -> Self:
        """The same, often with merged files, in a pool that blocks or does not."""
        return self.having(
            ("weir.checkpointing.fileMerging.enabled", dice.choice(("false", "true", "true"))),
            ("weir.checkpointing.fileMerging.poolBlocking", dice.choice(("false", "true"))),
        )

    def sized(self, *, rows: int, rate: int) -> Self:
        return replace(self, rows=rows, rate=rate)
