"""An operator that crashes at any of its writes is replaced without any effect on the result.

The API server is real; nodes and drivers are fakes, because thousands of fake drivers fit into one
process and need no waiting. Every scenario runs once undisturbed, which determines its expected end
and its number of writes, and then with the operator killed before a write and after it: for a
sample of them, or with ``--all`` for every one.
"""

import asyncio
from dataclasses import dataclass

import pytest

from crash_runs import Cell, Played, cells_of, crash_runner
from crash_scenarios import SCENARIOS
from fake_storage import MissingObject, PretendStorage, Start
from local_api_server import bare_api
from random_seed import SEED, dice, runs_all, show

SAMPLED = 2
"""Cells of each scene, on either side of a write."""


@dataclass(frozen=True)
class Run:
    """Everything that was played."""

    undisturbed: dict[str, Played]
    disturbed: dict[str, list[Played]]


def chosen(whole):
    cells = cells_of(whole)
    if runs_all():
        return cells
    return dice(f"crashes of {whole.cell.scenario.name}").sample(cells, min(SAMPLED, len(cells)))


async def play_everything(api, folder, scenarios):
    async with crash_runner(api, folder) as stage:
        whole = await stage.play_all([Cell(scenario) for scenario in scenarios])
        cells = [cell for played in whole for cell in chosen(played)]
        disturbed = await stage.play_all(cells)
    possible = sum(len(cells_of(played)) for played in whole)
    show(f"{len(cells)} of {possible} deaths of an operator, WEIR_SEED={SEED}")
    return Run(
        {played.cell.scenario.name: played for played in whole},
        {
            scenario.name: [played for played in disturbed if played.cell.scenario is scenario]
            for scenario in scenarios
        },
    )


@pytest.fixture(scope="module")
def run(request, tmp_path_factory):
    """All at once, for they mostly wait; but only those scenes that a test was chosen for."""
    chosen = [item for item in request.session.items if "run" in item.fixturenames]
    names = {item.callspec.params["scenario"] for item in chosen}
    folder = tmp_path_factory.mktemp("bare")
    with bare_api(folder) as api:
        scenarios = [scenario for scenario in SCENARIOS if scenario.name in names]
        return asyncio.run(play_everything(api, folder, scenarios))


each_scenario = pytest.mark.parametrize("scenario", [scenario.name for scenario in SCENARIOS])


def expect_none(problems):
    if problems:
        pytest.fail("\n\n".join(problems), pytrace=False)


@each_scenario
def test_an_undisturbed_scenario_breaks_no_promise(run, scenario):
    """K3 K4 K5 K6: no promise is broken on the way."""
    expect_none(run.undisturbed[scenario].broken)


@each_scenario
def test_the_outcome_does_not_tell_whether_the_operator_died(run, scenario):
    """K3: a crash between any two calls repeats, never doubles."""
    expected = run.undisturbed[scenario].outcome
    others = [played for played in run.disturbed[scenario] if played.outcome != expected]

    expect_none([f"{each.cell}: {each.outcome}, not {expected}" for each in others])


@each_scenario
def test_no_death_breaks_a_promise_to_the_job(run, scenario):
    """K3 K4 K5 K10: one driver at a time, no state lost, one savepoint for each wish."""
    expect_none(
        [f"{each.cell}: {promise}" for each in run.disturbed[scenario] for promise in each.broken]
    )


def a_job_that_ran():
    """Its first driver has completed a checkpoint, and is gone."""
    storage = PretendStorage("s3://pretended/job")
    storage.begin(1, Start("job-1"))
    storage.complete("job-1")
    storage.end(1)
    return storage


def test_a_second_driver_is_noticed():
    """K3: or the test above would prove nothing."""
    storage = a_job_that_ran()
    storage.begin(2, Start("job-1"))
    storage.begin(3, Start("job-1"))

    assert storage.broken == ["driver 3 lives beside [2]"]


def test_a_start_without_state_is_noticed():
    """K4: or the test above would prove nothing."""
    storage = a_job_that_ran()
    storage.begin(2, Start("job-2", fresh=True))

    assert [problem.partition(":")[0] for problem in storage.broken] == ["driver 2 lost state"]


@pytest.mark.parametrize("start", [Start("job-2", path="s3://nowhere"), Start("job-2", lowest=9)])
def test_a_restore_point_that_is_not_there_is_noticed(start):
    """K4: or the test above would prove nothing."""
    storage = a_job_that_ran()
    with pytest.raises(MissingObject):
        storage.begin(2, start)

    assert len(storage.broken) == 1


def test_a_second_savepoint_for_one_wish_is_noticed():
    """K5: or the test above would prove nothing."""
    storage = a_job_that_ran()
    storage.take_savepoint("key", "job-1", "s3://pretended/savepoints")
    storage.take_savepoint("key", "job-1", "s3://pretended/savepoints")

    assert storage.broken == ["a second savepoint was taken for key"]
