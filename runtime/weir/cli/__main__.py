"""The command ``weir``. Answers go to standard output, everything else to standard error."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import weir
from weir.api.environment_variables import WEIR_TOKEN, WEIR_URL
from weir.cli import inspect_output, tables
from weir.cli.client import Client
from weir.cli.command_request import ApiCommand, send_and_wait
from weir.cli.console import print_message, stderr_console, with_plain_errors
from weir.cli.garbage import find_garbage
from weir.cli.job_lookup import find_job
from weir.cli.managed_driver import drive as run_as_driver
from weir.cli.script_runner import RunOptions, run_script
from weir.errors import JobRejected
from weir.rest import job_registry
from weir.storage import savepoint_disposal
from weir.storage.inspection import operators_of, states_of
from weir.storage.savepoint_diff import differences
from weir.storage.store_by_scheme import StoreByScheme
from weir.storage.stores import as_url

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="""Checkpointed, stateful dataflows on PySpark.

Run a job on this machine, and in another terminal take a savepoint of it, stop it and continue:

        weir run job.py --slots 2

        weir savepoint --to backups/

        weir stop --to backups/

        weir run job.py --from backups/savepoint-1f0c

Look into what it left, with no job running:

        weir inspect backups/savepoint-1f0c --rows 5
""",
)


def _version(*, is_asked: bool) -> None:
    if is_asked:
        _print(f"weir {weir.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda is_asked: _version(is_asked=is_asked),
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    del version  # shown before any other option is read


Job = Annotated[str, typer.Argument(help="Which job; the only one if not given.")]
Url = Annotated[
    str, typer.Option(envvar=WEIR_URL, help="The API of a job elsewhere, as http://host:8081.")
]
Token = Annotated[
    str, typer.Option(envvar=WEIR_TOKEN, help="What opens it; better in the environment.")
]
To = Annotated[
    str, typer.Option(metavar="DIR", help="Make the savepoint below this directory or URL.")
]


@app.command(context_settings={"ignore_unknown_options": True})
@with_plain_errors
def run(  # noqa: PLR0913 - one parameter for each option of the command
    script: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="JOB.PY")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="For the script itself.")
    ] = None,
    *,
    slots: Annotated[int | None, typer.Option(min=1, help="Subtasks of each operator.")] = None,
    start_from: Annotated[
        str, typer.Option("--from", metavar="PATH", help="Savepoint or checkpoint to start from.")
    ] = "",
    claim: Annotated[
        bool, typer.Option("--claim", help="Own what --from names, and delete it when it is old.")
    ] = False,
    allow_non_restored_state: Annotated[
        bool,
        typer.Option(
            "--allow-non-restored-state", help="Drop state of operators that the job has no more."
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Replace the driver that runs a job of this name."),
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Run a finished job again, from its beginning.")
    ] = False,
) -> None:
    """Run a job's script on this machine and show how it is doing.

    What is not an option of this command, or comes after two dashes, is the script's own.

        weir run job.py

        weir run job.py --slots 4 --from backups/savepoint-1f0c --input events/

    Ctrl-C cancels the job, a second one ends the process at once.
    """
    wishes = RunOptions(
        slots=slots,
        start_from=as_url(start_from),
        claims=claim,
        allows_non_restored_state=allow_non_restored_state,
        takes_over=take_over,
        reruns=rerun,
    )
    run_script(script, arguments or [], wishes, stderr_console())


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@with_plain_errors
def drive(
    script: Annotated[str, typer.Argument(metavar="MAIN.PY", help="A path, or a URL to fetch.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]...", help="For the script itself.")
    ] = None,
) -> None:
    """Run a job's script as its driver, for an operator: plain log lines, a last report.

    Environment variables give the settings of the job and what it starts from. The exit code is 0
    when the job has ended, 2 when it failed for good or is refused, and 1 when it may be retried.

        weir drive s3://bucket/jobs/orders.py --input s3://bucket/events
    """
    raise typer.Exit(run_as_driver(script, arguments or []))


@app.command()
@with_plain_errors
def savepoint(job: Job = "", *, to: To = "", url: Url = "", token: Token = "") -> None:
    """Take a savepoint while the job continues, and print its path.

    weir savepoint

    weir savepoint orders --to s3://bucket/savepoints
    """
    client = find_job(job, url, token)
    command = ApiCommand("savepoints", "taking a savepoint", _below(to))
    _print_location(client, command)


@app.command()
@with_plain_errors
def stop(
    job: Job = "",
    *,
    drain: Annotated[
        bool, typer.Option("--drain", help="Fire all timers first: the job will not continue.")
    ] = False,
    to: To = "",
    url: Url = "",
    token: Token = "",
) -> None:
    """Take a savepoint, end the job with it, and print where it is.

    weir stop --to backups/

    weir stop orders --drain
    """
    client = find_job(job, url, token)
    command = ApiCommand("stop", "stopping with a savepoint", {**_below(to), "drain": drain})
    _print_location(client, command)


@app.command()
@with_plain_errors
def cancel(job: Job = "", *, url: Url = "", token: Token = "") -> None:
    """End a job at once, without a savepoint.

    weir cancel orders
    """
    client = find_job(job, url, token)
    send_and_wait(client, ApiCommand("cancel", "cancelling", {}), stderr_console())
    print_message("The job is cancelled.")


@app.command()
@with_plain_errors
def checkpoints(job: Job = "", *, url: Url = "", token: Token = "") -> None:
    """Show the last checkpoints of a job: how long, how large, where, or why not.

    weir checkpoints orders
    """
    statistics = find_job(job, url, token).checkpoints()
    Console().print(tables.of_checkpoints(statistics.history))
    for text in tables.notable(statistics):
        _print(text)


@app.command()
@with_plain_errors
def jobs() -> None:
    """Show the jobs that run on this machine."""
    found = job_registry.running()
    if found:
        Console().print(tables.of_jobs(found))
    else:
        print_message("No job of yours runs on this machine. `weir run job.py` starts one.")


@app.command()
@with_plain_errors
def inspect(
    path: Annotated[str, typer.Argument(help="Savepoint or checkpoint, or its _metadata.")],
    *,
    rows: Annotated[int, typer.Option(min=0, help="Show so many rows of each state.")] = 0,
    operator: Annotated[str, typer.Option(metavar="UID", help="Only this operator.")] = "",
    state: Annotated[str, typer.Option(metavar="NAME", help="Rows of this state only.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show what is in a savepoint or checkpoint, and verify every file of it.

    weir inspect backups/savepoint-1f0c

    weir inspect backups/savepoint-1f0c --operator sums --state total --rows 10
    """
    store, description = inspect_output.describe_snapshot(as_url(path))
    operators = operators_of(description, operator)
    chosen = states_of(operators, state)
    if as_json:
        shown = inspect_output.as_json(description, operators)
        if rows:
            shown["rows"] = [inspect_output.sample(store, each, rows) for each in chosen]
        _print(json.dumps(shown, indent=1, default=inspect_output.in_json))
    else:
        _print(inspect_output.headline(description))
        for line in inspect_output.file_statistics(description):
            _print(line)
        Console().print(inspect_output.of_operators(operators))
        for note in (note for each in operators for note in inspect_output.notes(each)):
            _print(note)
        for each in chosen if rows else ():
            Console().print(inspect_output.of_rows(store, each, rows))
    _fail_for(description.problems)


@app.command()
@with_plain_errors
def diff(
    before: Annotated[str, typer.Argument(help="Savepoint or checkpoint.")],
    after: Annotated[str, typer.Argument(help="Another one.")],
) -> None:
    """Show how two snapshots differ: operators, schemas, rows and sizes.

    weir diff backups/savepoint-1f0c backups/savepoint-77aa
    """
    (_, old), (_, new) = (
        inspect_output.describe_snapshot(as_url(before)),
        inspect_output.describe_snapshot(as_url(after)),
    )
    found = differences(old, new)
    if found:
        Console().print(inspect_output.of_differences(found))
    else:
        print_message("They have the same operators, schemas, rows and sizes.")
    _fail_for((*old.problems, *new.problems))


@app.command()
@with_plain_errors
def gc(
    directory: Annotated[str, typer.Argument(help="A job's directory, {storage}/{job}.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show.")] = False,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Only what was written so long ago, as in 1h.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete the files of dead drivers that no checkpoint of a job's directory refers to.

    Savepoints, what the job's log offers to restore from, and everything of the newest driver stay.

        weir gc checkpoints/orders --dry-run

        weir gc s3://bucket/checkpoints/orders --older-than 1d --yes
    """
    found = find_garbage(as_url(directory), older_than)
    if not found.sizes:
        print_message("Nothing is left over.")
        return
    Console().print(found.table())
    print_message(found.summary)
    if dry_run:
        return
    if not yes:
        typer.confirm("Delete them?", abort=True, err=True)
    found.delete()
    print_message("They are deleted.")


@app.command()
@with_plain_errors
def dispose(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Savepoints to delete.")],
) -> None:
    """Delete savepoints for good, without asking. One that is gone already is no mistake.

    Anything that is no savepoint is refused: a checkpoint is its job's.

        weir dispose s3://bucket/savepoints/savepoint-1f0c
    """
    store = StoreByScheme()
    for path in paths:
        was_there = savepoint_disposal.dispose(store, as_url(path))
        print_message(
            f"{path} is deleted." if was_there else f"{path} is not there; nothing is deleted."
        )


def _fail_for(problems: tuple[JobRejected, ...]) -> None:
    """Show what is damaged; a script sees it by the exit code."""
    for problem in problems:
        print_message(f"Damaged: {problem}", style="red")
    if problems:
        raise typer.Exit(1)


def _below(directory: str) -> dict[str, object]:
    return {"targetDirectory": as_url(directory)} if directory else {}


def _print_location(client: Client, command: ApiCommand) -> None:
    state = send_and_wait(client, command, stderr_console())
    if state is None:
        print_message(
            "The job ended before it reported the savepoint; its log has the path.", "red"
        )
        raise typer.Exit(1)
    _print(state.location or "")


def _print(text: str) -> None:
    """As one line, however long, so that it can be copied and piped."""
    Console().print(text, soft_wrap=True, highlight=False, markup=False)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
