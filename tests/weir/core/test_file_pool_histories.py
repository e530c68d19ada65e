"""Whatever a slot's subtasks do in whatever order, its files are packed, kept and deleted right."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from weir.core.file_pool import (
    DeleteFile,
    DropFile,
    EndPart,
    FailPart,
    FileMergingPolicy,
    FilePool,
    Part,
    Piece,
    ReleaseAck,
    WriteFile,
)
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId

SUBTASKS = [SubtaskId(OperatorId("sum"), index) for index in range(3)]
LIMIT = 30

parts = st.builds(Part, st.just(1), st.sampled_from([1, 2, 3]), st.sampled_from(SUBTASKS))


class Slot(RuleBasedStateMachine):
    """S6: no file is lost, left over, or acked before it is durable."""

    def __init__(self):
        super().__init__()
        self.pool = FilePool(FileMergingPolicy(LIMIT, 2.0, 10))
        for subtask in SUBTASKS:
            self.pool.joined(1, subtask)
        self.now = 0
        self.pieces = {}
        """By file: where each piece begins, how long it is, and whose it is."""
        self.ended, self.reported, self.given_up = set(), set(), set()
        self.writing, self.stored, self.failed = [], set(), set()
        self.held = set()

    def obey(self, actions):
        for action in actions:
            match action:
                case WriteFile(path):
                    self.writing.append(path)
                case DropFile(path):
                    assert path not in self.stored
                    assert self.holders(path) <= self.given_up
                case DeleteFile(path):
                    assert not self.holders(path) & self.reported
                    self.stored.discard(path)
                case ReleaseAck(part):
                    assert part in self.ended
                    assert all(p in self.stored for p in self.files_of(part))
                    self.reported.add(part)
                    self.obey(self.pool.reported(part))
                case FailPart(part):
                    self.failed.add(part)
                case EndPart(part):
                    assert part in self.reported | self.given_up
                    self.held.remove(part)

    def holders(self, path):
        return {part for _, _, part in self.pieces.get(path, ())}

    def files_of(self, part):
        return [path for path in self.pieces if part in self.holders(path)]

    @rule(part=parts, size=st.integers(1, LIMIT + 10), directory=st.sampled_from(["own", "shared"]))
    def offer(self, part, size, directory):
        if part in self.ended or part in self.given_up:
            return
        path = f"{directory}/{part.checkpoint}-{part.subtask}-{len(self.pieces)}-{self.now}-{size}"
        self.now += 1
        place, actions = self.pool.offered(Piece(part, path, size), Millis(self.now))
        self.pieces.setdefault(place.path, []).append((place.offset, size, part))
        self.held.add(part)
        self.obey(actions)

    @rule(part=parts)
    def ack(self, part):
        if part not in self.ended and part not in self.given_up and part not in self.failed:
            self.ended.add(part)
            self.held.add(part)
            self.obey(self.pool.acked(part))

    @rule(part=parts)
    def give_up(self, part):
        if part not in self.reported:
            self.given_up.add(part)
            self.obey(self.pool.discarded(part))

    @rule(subtask=st.sampled_from(SUBTASKS), newest=st.sampled_from([2, 3]))
    def complete(self, subtask, newest):
        older = {Part(1, CheckpointId(c), subtask) for c in range(1, newest)}
        self.given_up |= older & self.held
        self.obey(self.pool.completed(1, subtask, CheckpointId(newest)))

    @precondition(lambda self: self.writing)
    @rule(fails=st.booleans())
    def write(self, fails):
        path = self.writing.pop(0)
        if not fails:
            self.stored.add(path)
            self.obey(self.pool.written(path))
            return
        self.obey(self.pool.not_written(path))
        for part in sorted(self.failed - self.given_up):
            self.give_up(part)

    @rule(waited=st.integers(0, 12))
    def wait(self, waited):
        self.now += waited
        self.obey(self.pool.pass_time(Millis(self.now)))

    @invariant()
    def every_piece_has_its_own_place(self):
        for pieces in self.pieces.values():
            end = 0
            for offset, size, _ in pieces:
                assert offset == end
                end += size
            assert end <= LIMIT or len(pieces) == 1

    def teardown(self):
        """Everything ends: what was acked is there, and nothing else."""
        for checkpoint in (1, 2, 3):
            for subtask in SUBTASKS:
                part = Part(1, CheckpointId(checkpoint), subtask)
                if part not in self.ended:
                    self.give_up(part)
        while self.writing:
            self.write(fails=False)
        for part in sorted(self.ended - self.given_up):
            assert part in self.reported
        wanted = {path for part in self.reported for path in self.files_of(part)}
        assert self.stored == wanted
        assert self.held == set()
        assert self.pool.groups == {}


TestSlot = Slot.TestCase
