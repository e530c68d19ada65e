"""Pieces of a slot's subtasks share files, and no file is lost, left over or acked too early."""

import pytest

from weir.core.file_pool import (
    DeleteFile,
    DropFile,
    EndPart,
    FailPart,
    FileMergingPolicy,
    FilePool,
    NotAMember,
    Part,
    Piece,
    Placement,
    ReleaseAck,
    WriteFile,
)
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId

A, B = (SubtaskId(OperatorId("sum"), index) for index in (0, 1))
ONE, TWO = CheckpointId(1), CheckpointId(2)
FILE = "chk-1/merged-a"


def a_pool(max_file_size=100, wait=None, members=(A, B)):
    pool = FilePool(FileMergingPolicy(max_file_size, 2.0, wait))
    for subtask in members:
        pool.joined(1, subtask)
    return pool


def part(subtask, checkpoint=ONE, attempt=1):
    return Part(attempt, checkpoint, subtask)


def offer(pool, subtask, path, size=10, now=0, **changes):
    checkpoint = changes.pop("checkpoint", ONE)
    piece = Piece(part(subtask, checkpoint), path, size, **changes)
    return pool.offered(piece, Millis(now))


def test_the_pieces_of_a_slot_lie_behind_each_other_in_one_file():
    """S6: one file for all subtasks of a slot, written when all of them have come."""
    pool = a_pool()

    assert offer(pool, A, "chk-1/a") == (Placement(FILE, 0), [])
    assert offer(pool, B, "chk-1/b", 7) == (Placement(FILE, 10), [])
    assert pool.acked(part(A)) == []
    assert pool.acked(part(B)) == [WriteFile(FILE)]
    assert pool.written(FILE) == [ReleaseAck(part(A)), ReleaseAck(part(B))]


def test_what_later_checkpoints_refer_to_is_apart_from_what_they_do_not():
    """S6: in-flight data does not keep the space of shared state, nor the other way."""
    pool = a_pool(members=(A,))

    assert offer(pool, A, "shared/a")[0] == Placement("shared/merged-a", 0)
    assert offer(pool, A, "chk-1/in-flight")[0] == Placement("chk-1/merged-in-flight", 0)
    assert pool.acked(part(A)) == [
        WriteFile("shared/merged-a"),
        WriteFile("chk-1/merged-in-flight"),
    ]
    assert pool.written("shared/merged-a") == []
    assert pool.written("chk-1/merged-in-flight") == [ReleaseAck(part(A))]


def test_a_file_that_would_grow_too_large_is_written():
    """S6: the next piece opens another one."""
    pool = a_pool(max_file_size=25)
    offer(pool, A, "chk-1/a")
    offer(pool, B, "chk-1/b")

    assert offer(pool, A, "chk-1/c") == (Placement("chk-1/merged-c", 0), [WriteFile(FILE)])


def test_a_large_piece_has_a_file_of_its_own():
    """S6: and does not close the file that is open."""
    pool = a_pool(max_file_size=25)
    offer(pool, A, "chk-1/a")

    place, actions = offer(pool, A, "chk-1/large", 30)

    assert place == Placement("chk-1/merged-large", 0)
    assert actions == [WriteFile("chk-1/merged-large")]
    assert offer(pool, B, "chk-1/b")[0] == Placement(FILE, 10)


def test_checkpoints_do_not_share_a_file():
    """S6: so a file is dead as soon as its checkpoint is."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")

    assert offer(pool, A, "chk-2/a", checkpoint=TWO)[0] == Placement("chk-2/merged-a", 0)


def test_a_subtask_without_pieces_acks_at_once():
    """S6: and the others do not wait for it."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")

    assert pool.acked(part(B)) == [ReleaseAck(part(B))]
    assert pool.acked(part(A)) == [WriteFile(FILE)]


def test_a_pool_that_does_not_block_waits_for_others_only_so_long():
    """S6: one slow subtask does not hold back the acks of the others."""
    pool = a_pool(wait=50)
    offer(pool, A, "chk-1/a", now=100)
    pool.acked(part(A))

    assert pool.next_deadline() == 150
    assert pool.pass_time(Millis(149)) == []
    assert pool.pass_time(Millis(150)) == [WriteFile(FILE)]
    assert pool.written(FILE) == [ReleaseAck(part(A))]
    assert offer(pool, B, "chk-1/b")[0] == Placement("chk-1/merged-b", 0)
    assert pool.acked(part(B)) == [WriteFile("chk-1/merged-b")]


def test_a_pool_that_blocks_waits_for_all():
    """S6: the timeout of the checkpoint ends it."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")
    pool.acked(part(A))

    assert pool.next_deadline() is None
    assert pool.pass_time(Millis(1 << 40)) == []


def test_a_file_that_all_have_given_up_is_not_written():
    """S6, C7: an aborted checkpoint leaves nothing."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")
    offer(pool, B, "chk-1/b")

    assert pool.discarded(part(A)) == [EndPart(part(A))]
    assert pool.discarded(part(B)) == [EndPart(part(B)), DropFile(FILE)]
    assert pool.groups == {}


def test_a_file_that_one_has_given_up_stays_for_the_other():
    """S6: only the last one may delete it."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")
    offer(pool, B, "chk-1/b")
    pool.acked(part(A))

    assert pool.discarded(part(B)) == [EndPart(part(B)), WriteFile(FILE)]
    assert pool.written(FILE) == [ReleaseAck(part(A))]
    assert pool.discarded(part(A)) == [EndPart(part(A)), DeleteFile(FILE)]
    assert pool.groups == {}


def test_a_file_that_an_ack_names_is_the_coordinators():
    """S6, C7: it knows all references, and the slot deletes the file no more."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")
    offer(pool, B, "chk-1/b")
    pool.acked(part(A))
    pool.acked(part(B))
    pool.written(FILE)

    assert pool.reported(part(A)) == [EndPart(part(A))]
    assert pool.discarded(part(A)) == []
    assert pool.discarded(part(B)) == [EndPart(part(B))]
    assert pool.groups == {}


def test_a_file_that_is_given_up_while_it_is_written_is_deleted_then():
    """S6, C7: and not before, or the write would bring it back."""
    pool = a_pool(members=(A,))
    offer(pool, A, "chk-1/a")
    assert pool.acked(part(A)) == [WriteFile(FILE)]

    assert pool.discarded(part(A)) == [EndPart(part(A))]
    assert pool.written(FILE) == [DeleteFile(FILE)]
    assert pool.groups == {}


def test_a_write_that_fails_fails_every_part_in_it_and_no_other():
    """S6, C18: what it may have left is deleted."""
    third = SubtaskId(OperatorId("sum"), 2)
    pool = a_pool(max_file_size=25, members=(A, B, third))
    offer(pool, A, "chk-1/a")
    offer(pool, B, "chk-1/b")
    offer(pool, third, "chk-1/c")
    for subtask in (A, B, third):
        pool.acked(part(subtask))

    assert pool.not_written(FILE) == [DeleteFile(FILE), FailPart(part(A)), FailPart(part(B))]
    assert pool.written("chk-1/merged-c") == [ReleaseAck(part(third))]


def test_an_ack_that_comes_after_its_file_was_lost_is_not_released():
    """S6, C18: the failure may still be on its way to the subtask when the subtask acks."""
    pool = a_pool(wait=10)
    offer(pool, A, "chk-1/a")
    pool.left(1, B)
    pool.pass_time(Millis(1 << 40))
    pool.not_written(FILE)

    assert pool.acked(part(A)) == []
    assert pool.discarded(part(A)) == [EndPart(part(A))]
    assert pool.groups == {}


def test_a_subtask_that_leaves_gives_up_what_it_has_not_acked():
    """S6, C9: and no file waits for it."""
    pool = a_pool()
    offer(pool, A, "chk-1/a")
    offer(pool, B, "chk-1/b")
    pool.acked(part(B))

    assert pool.left(1, A) == [EndPart(part(A)), WriteFile(FILE)]
    with pytest.raises(NotAMember):
        offer(pool, A, "chk-1/more")


def test_an_older_attempt_of_a_subtask_offers_nothing_to_a_newer_one():
    """S6, C9: uploads may go on after their attempt."""
    pool = a_pool()
    pool.left(1, A)
    pool.joined(2, A)

    with pytest.raises(NotAMember):
        offer(pool, A, "chk-1/late")
    assert pool.left(1, A) == []
    assert pool.members[A] == 2


def test_a_completed_checkpoint_ends_older_ones_except_savepoints():
    """S6, C5: their abort may not have come."""
    pool = a_pool(members=(A,))
    offer(pool, A, "chk-1/a")
    offer(pool, A, "sp/a", checkpoint=TWO, is_savepoint=True)
    newest = CheckpointId(3)

    assert pool.completed(1, A, newest) == [EndPart(part(A)), DropFile(FILE)]
    assert pool.acked(part(A, TWO)) == [WriteFile("sp/merged-a")]


def test_a_part_ends_once_whatever_ends_it():
    """S6, R7: what the slot holds for it is let go when it ends, and only then."""
    for end in (
        lambda pool: pool.reported(part(A)),
        lambda pool: pool.discarded(part(A)),
        lambda pool: pool.completed(1, A, TWO),
        lambda pool: pool.left(1, A),
    ):
        pool = a_pool()
        offer(pool, A, "chk-1/a")
        pool.acked(part(A))

        assert EndPart(part(A)) in end(pool)
        assert EndPart(part(A)) not in end(pool)


def test_the_ack_of_a_savepoint_without_pieces_outlasts_a_newer_checkpoint():
    """S6, C5: only a piece says that it is a savepoint; without any, nothing is held for long."""
    pool = a_pool()
    assert pool.acked(part(A)) == [ReleaseAck(part(A))]

    assert pool.completed(1, A, TWO) == []
    assert pool.reported(part(A)) == [EndPart(part(A))]


def test_an_aborted_savepoint_is_forgotten_when_a_newer_checkpoint_completes():
    """S6, R7: also if it was aborted before all subtasks of the slot had seen it."""
    pool = a_pool()
    offer(pool, A, "sp/a", is_savepoint=True)
    pool.discarded(part(A))

    pool.completed(1, B, TWO)

    assert pool.groups == {}


def test_a_savepoint_that_was_forgotten_waits_for_none():
    """S6: a newer checkpoint completed when one subtask had acked and the others were to come."""
    pool = a_pool(max_file_size=25)
    offer(pool, A, "sp/large", 30, is_savepoint=True)
    pool.acked(part(A))
    pool.written("sp/merged-large")
    pool.reported(part(A))
    pool.completed(1, A, TWO)

    offer(pool, B, "sp/b", is_savepoint=True)

    assert pool.acked(part(B)) == [WriteFile("sp/merged-b")]
    assert pool.written("sp/merged-b") == [ReleaseAck(part(B))]
    assert pool.reported(part(B)) == [EndPart(part(B))]
    assert pool.groups == {}
