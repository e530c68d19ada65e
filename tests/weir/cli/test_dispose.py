"""The command `weir dispose`, as a short-lived pod runs it."""

from typer.testing import CliRunner

from weir.cli.__main__ import app


def weir(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_savepoints_that_are_gone_already_are_no_mistake(tmp_path):
    """K5: the pod that deleted them may have died before it could say so."""
    gone = tmp_path / "savepoint-1", tmp_path / "savepoint-2"
    result = weir("dispose", *gone)

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"{path} is not there; nothing is deleted." for path in gone
    ]


def test_what_is_no_savepoint_is_refused_with_words(tmp_path):
    """K5 U3: thing, reason, remedy."""
    (tmp_path / "photo").write_text("smile")
    result = weir("dispose", tmp_path)

    assert result.exit_code == 1
    assert "it is no savepoint" in result.stderr
    assert "it holds files and no manifest" in result.stderr
    assert (tmp_path / "photo").exists()
