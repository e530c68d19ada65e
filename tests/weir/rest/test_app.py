"""What a client of a job's API is promised."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from fake_job_view import TOKEN, FakeJobView, completed, failed, served
from wait_until import until
from weir.api.report import JobReport
from weir.errors import JobRejected
from weir.rest.commands import Cancel, Stop, TakeCheckpoint, TakeSavepoint

BEARER = {"Authorization": f"Bearer {TOKEN}"}
ORDERS = ("checkpoints", "savepoints", "stop", "cancel")


@pytest.fixture(scope="module")
def served_job():
    """One server for all: what a test did to its job is forgotten before the next."""
    job = FakeJobView()
    with served(job) as server, httpx.Client(base_url=server.url) as client:
        yield job, client


@pytest.fixture
def job(served_job):
    served_job[0].forget()
    return served_job[0]


@pytest.fixture
def client(served_job, job):
    assert job is served_job[0]
    return served_job[1]


def problem_of(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"title", "status", "cause", "remedy"}
    assert all(problem.values())
    return problem


# -- pages


def test_the_job_is_shown_at_a_glance(client):
    """U1: status, slots, restarts and why."""
    page = client.get("/v1/job").json()

    assert (page["name"], page["status"], page["restarts"]) == ("orders", "RUNNING", 3)
    assert page["slots"] == {"registered": 2, "missing": 0}


def test_the_graph_is_shown_with_what_each_subtask_does(client):
    """U1: operators, edges, backpressure."""
    page = client.get("/v1/job/graph").json()

    assert [o["id"] for o in page["operators"]] == ["words", "sums"]
    assert [s["is_back_pressured"] for s in page["operators"][0]["subtasks"]] == [False, True]
    assert page["edges"] == [{"id": "e", "source": "words", "target": "sums", "kind": "hash"}]


def test_checkpoints_are_counted_summarised_and_listed_in_flinks_words(client):
    """U1: counts, summary, latest, history."""
    page = client.get("/v1/job/checkpoints").json()

    assert set(page) == {"counts", "summary", "latest", "history"}
    assert set(page["counts"]) == {"restored", "total", "in_progress", "completed", "failed"}
    assert page["summary"]["end_to_end_duration"] == {"min": 1, "avg": 2, "max": 3}
    latest = {sort: page["latest"][sort]["id"] for sort in page["latest"]}
    assert latest == {"completed": 7, "savepoint": 8, "failed": 9, "restored": 6}
    assert [c["id"] for c in page["history"]] == [9, 8, 7]
    assert page["history"][0]["failure_message"].startswith("CHECKPOINT_EXPIRED")


def test_one_checkpoint_is_shown_with_the_part_of_each_operator(client):
    """U1: details."""
    page = client.get("/v1/job/checkpoints/7").json()

    assert (page["id"], page["external_path"]) == (7, "file:///data/orders/chk-7")
    assert set(page["tasks"]) == {"words", "sums"}


def test_an_operators_part_is_shown_by_subtask(client):
    """U1: sync, async, alignment and start delay of each."""
    page = client.get("/v1/job/checkpoints/7/subtasks/words").json()

    assert page["subtasks"][0]["checkpoint"] == {"sync": 2, "async": 40}
    assert page["subtasks"][0]["alignment"] == {"processed": 512, "persisted": 128, "duration": 7}
    assert page["summary"]["checkpoint_duration"]["async"] == {"min": 1, "avg": 2, "max": 3}


def test_the_settings_of_checkpointing_are_a_page_and_not_a_checkpoint(client):
    """U1: the path `config` is taken before a checkpoint's number."""
    page = client.get("/v1/job/checkpoints/config").json()

    assert (page["mode"], page["interval"], page["state_backend"]) == (
        "exactly_once",
        1_000,
        "hashmap",
    )


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("checkpoints/77", "checkpoint 77"),
        ("checkpoints/77/subtasks/words", "checkpoint 77"),
        ("checkpoints/7/subtasks/missing", "'missing'"),
        ("requests/unknown", "unknown"),
        ("nothing-of-the-kind", "/v1/job/nothing-of-the-kind"),
    ],
)
def test_what_is_not_there_is_a_problem_that_names_it(client, path, named):
    """U3: thing, cause, remedy."""
    answer = client.get(f"/v1/job/{path}")

    assert answer.status_code == 404
    assert named in problem_of(answer)["title"]


def test_the_driver_says_that_it_lives(client):
    """K9: a probe needs no token."""
    assert client.get("/healthz").text == "ok\n"


# -- the report


def test_the_report_has_all_that_a_decision_of_the_operator_depends_on(client):
    """K7 X3: in camelCase, and in a shape that an operator can check."""
    answer = client.get("/v1/job/report", headers=BEARER)

    assert answer.json()["newest"]["completedAtMs"] == 1_350
    assert JobReport.model_validate_json(answer.content) == FakeJobView().report().stamped()


def test_the_report_is_refused_without_the_token(client):
    """X1: it names every request that was made."""
    answer = client.get("/v1/job/report")

    assert answer.status_code == 401
    assert "only its bearer" in problem_of(answer)["cause"]


def test_a_request_with_the_current_version_waits_for_the_next_report(job, client):
    """K7: a manager need not ask often to hear soon."""
    known = client.get("/v1/job/report", headers=BEARER).json()["version"]
    wanted = {"after": known, "wait": 60}
    with ThreadPoolExecutor(1) as waiting:
        answer = waiting.submit(
            client.get, "/v1/job/report", params=wanted, headers=BEARER, timeout=90
        )
        until("the question is waited with", lambda: job.reports > 1, lambda: str(job.reports))
        assert not answer.done()
        job.status = "RESTARTING"

    report = answer.result().json()
    assert (report["phase"], report["version"] == known) == ("RESTARTING", False)


def test_a_request_with_another_version_is_answered_at_once(client):
    """K7: a driver that was started anew has nothing in common with the one before."""
    wanted = {"after": "of another driver", "wait": 60}
    answer = client.get("/v1/job/report", params=wanted, headers=BEARER)

    assert answer.json()["phase"] == "RUNNING"


def test_an_unchanged_report_is_returned_when_the_wait_is_over(client):
    """K7: so that its reader knows that it is still so."""
    known = client.get("/v1/job/report", headers=BEARER).json()
    wanted = {"after": known["version"], "wait": 0.01}

    assert client.get("/v1/job/report", params=wanted, headers=BEARER).json() == known


@pytest.mark.parametrize("wanted", [{"wait": 61}, {"wait": -1}, {"after": "v" * 65}])
def test_an_unbounded_wait_for_a_report_is_refused(client, wanted):
    """X3: a question is bounded too."""
    assert client.get("/v1/job/report", params=wanted, headers=BEARER).status_code == 422


# -- orders


@pytest.mark.parametrize(
    ("path", "body", "order"),
    [
        ("checkpoints", None, TakeCheckpoint()),
        ("savepoints", None, TakeSavepoint()),
        ("savepoints", {"targetDirectory": "s3://b/d"}, TakeSavepoint("s3://b/d")),
        ("stop", None, Stop()),
        ("stop", {"targetDirectory": "file:///d", "drain": True}, Stop("file:///d", drain=True)),
        ("cancel", None, Cancel()),
    ],
)
def test_an_order_is_taken_down_and_answered_with_its_request(client, job, path, body, order):
    """C11: each kind of savepoint can be asked for from outside."""
    answer = client.post(f"/v1/job/{path}", json=body, headers=BEARER)

    assert answer.status_code == 202
    assert answer.json()["status"] == "IN_PROGRESS"
    assert job.orders == [order]


@pytest.mark.parametrize("path", ORDERS)
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic d2Vpcjp3ZWly"}],
)
def test_a_request_without_the_token_does_not_change_the_job(client, job, path, headers):
    """X1: a clear refusal, and nothing was ordered."""
    answer = client.post(f"/v1/job/{path}", headers=headers)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in problem_of(answer)["remedy"]
    assert job.orders == []


def test_the_same_key_is_the_same_request(client, job):
    """K3: a client whose connection broke asks again, and nothing is done twice."""
    headers = BEARER | {"Idempotency-Key": "upgrade-7"}
    first = client.post("/v1/job/savepoints", headers=headers).json()
    again = client.post("/v1/job/savepoints", headers=headers).json()

    assert first["id"] == again["id"] == "upgrade-7"
    assert job.orders == [TakeSavepoint()]


def test_a_request_tells_where_the_savepoint_is(client, job):
    """U2: location and checkpoint, once it is complete."""
    request = client.post("/v1/job/savepoints", headers=BEARER).json()["id"]
    job.outcome = completed("s3://b/savepoint-8", checkpoint=8)

    state = client.get(f"/v1/job/requests/{request}").json()

    assert (state["status"], state["location"], state["checkpoint"]) == (
        "COMPLETED",
        "s3://b/savepoint-8",
        8,
    )


def test_a_request_tells_why_it_failed(client, job):
    """C10: the reason is one word out of the enumerated set."""
    request = client.post("/v1/job/savepoints", headers=BEARER).json()["id"]
    job.outcome = failed("CHECKPOINT_EXPIRED", "sums-1 was still aligning")

    state = client.get(f"/v1/job/requests/{request}").json()

    assert (state["status"], state["reason"], state["message"]) == (
        "FAILED",
        "CHECKPOINT_EXPIRED",
        "sums-1 was still aligning",
    )


def test_a_client_may_wait_for_the_end_of_its_request(client, job):
    """U3: the answer comes with the outcome, not with the next poll."""

    def end_it():
        assert job.ordered.wait(20)
        job.outcome = completed("s3://b/savepoint-8")

    threading.Thread(target=end_it).start()
    state = client.post("/v1/job/stop?wait=20", headers=BEARER).json()

    assert state["status"] == "COMPLETED"


def test_an_order_that_cannot_be_is_refused_with_its_remedy(client, job):
    """U3: the problem, the cause and the remedy are a field each."""
    job.refusal = JobRejected("job orders accepts no requests", "it is finished", "start it again")
    problem = problem_of(client.post("/v1/job/stop", headers=BEARER))

    assert problem == {
        "title": "job orders accepts no requests",
        "status": 409,
        "cause": "it is finished",
        "remedy": "start it again",
    }


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        ({"targetDirectory": "/data/savepoints"}, "write file:///data/savepoints"),
        ({"targetDirectory": "s3://key:secret@b/d"}, "Secret"),
        ({"directory": "s3://b/d"}, "openapi.json"),
    ],
)
def test_a_body_that_cannot_be_read_is_explained(client, job, body, remedy):
    """U3, X4: the remedy is there, what was sent is not repeated."""
    answer = client.post("/v1/job/savepoints", json=body, headers=BEARER)

    assert answer.status_code == 422
    assert remedy in problem_of(answer)["remedy"]
    assert "key:secret" not in answer.text
    assert job.orders == []


@pytest.mark.parametrize("key", ["with a blank", "a/b", "x" * 129])
def test_a_key_is_a_short_word(client, job, key):
    """X3: what comes from outside is bounded, for it is a request's id from then on."""
    headers = BEARER | {"Idempotency-Key": key}

    assert client.post("/v1/job/cancel", headers=headers).status_code == 422
    assert job.orders == []


# -- the description


def test_the_description_lists_every_path(client):
    """U2: a client needs nothing else."""
    paths = client.get("/v1/openapi.json").json()["paths"]

    assert {(path, verb) for path in paths for verb in paths[path]} == {
        ("/healthz", "get"),
        ("/metrics", "get"),
        ("/v1/job", "get"),
        ("/v1/job/graph", "get"),
        ("/v1/job/checkpoints", "get"),
        ("/v1/job/checkpoints/config", "get"),
        ("/v1/job/checkpoints/{checkpoint}", "get"),
        ("/v1/job/checkpoints/{checkpoint}/subtasks/{operator}", "get"),
        ("/v1/job/requests/{request}", "get"),
        ("/v1/job/report", "get"),
        *((f"/v1/job/{order}", "post") for order in ORDERS),
    }


def test_the_description_says_which_paths_need_the_token(client):
    """X1: all that change the job, the report to its manager, and no other."""
    paths = client.get("/v1/openapi.json").json()["paths"]
    guarded = {path for path in paths for verb in paths[path].values() if "security" in verb}

    assert guarded == {f"/v1/job/{order}" for order in (*ORDERS, "report")}


def test_the_token_is_nowhere_to_be_read(client, caplog):
    """X4: neither in a page nor in a log, after right and wrong orders alike."""
    caplog.set_level("DEBUG", logger="weir")
    client.post("/v1/job/cancel", headers=BEARER)
    client.post("/v1/job/cancel", headers={"Authorization": f"Bearer {TOKEN}-almost"})
    pages = ["/v1/job", "/v1/job/graph", "/v1/job/checkpoints", "/v1/openapi.json", "/metrics"]

    assert not [page for page in pages if TOKEN in client.get(page).text]
    assert TOKEN not in caplog.text
