"""The studio's server: who is answered, each call of the page, and its bounds."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from starlette.testclient import TestClient

import stretto
from stretto.studio import server
from stretto.studio.folder import Folder
from stretto.studio.server import Studio, application
from stretto.studio.worker import Worker, WorkerError

HOST = "127.0.0.1:8765"
QUERY = "SELECT * FROM S WHERE A AS a; B AS b WITHIN 5 [t]"
NO_ROLES: dict[str, Any] = {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("data")
    pq.write_table(pa.table({"type": ["A", "B", "A", "B"], "t": [1, 2, 3, 4]}), found / "events.parquet")
    return found


@pytest.fixture(scope="module")
def studio(folder: Path) -> Studio:
    return Studio(Folder(folder), "events.parquet", {"time": "t"})


def client_of(studio: Studio, **more: Any) -> Any:
    return TestClient(application(studio, frozenset({HOST})), base_url=f"http://{HOST}", **more)


@pytest.fixture(scope="module")
def client(studio: Studio) -> Iterator[Any]:
    with client_of(studio, headers={server.HEADER: studio.token}) as made:
        yield made


# ---- Who is answered


def test_without_the_token_nothing_is_answered(studio: Studio, client: TestClient) -> None:
    for wrong in (NO_ROLES, {server.HEADER: ""}, {server.HEADER: studio.token[:-1]}, {server.HEADER: "é".encode()}):
        stranger = client_of(studio)
        for path in ("/", "/static/studio.js", "/api/begin", "/nothing", "/?token=x"):
            assert stranger.get(path, headers=wrong).status_code == 403
        for call in ("open", "save", "cancel", "begin_replay", "end_replay", *server._CALLS):
            assert stranger.post(f"/api/{call}", json={}, headers=wrong).status_code == 403


def test_the_first_address_sets_a_cookie(studio: Studio) -> None:
    browser = client_of(studio, follow_redirects=False)
    answer = browser.get(f"/?token={studio.token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert browser.get("/api/begin").status_code == 200
    assert (
        client_of(studio).get(f"/api/begin?token={studio.token}").status_code == 403
    )  # only the page has it in its address


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://{HOST}"},
    ],
)
def test_another_host_or_page_is_refused(client: Any, headers: dict[str, str]) -> None:
    assert client.get("/api/begin", headers=headers).status_code == 403
    assert client.post("/api/check", json={"text": QUERY}, headers=headers).status_code == 403


def test_every_answer_forbids_to_load_from_elsewhere(client: Any, studio: Studio) -> None:
    for answer in (client.get("/api/begin"), client.get("/nothing"), client_of(studio).get("/")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_only_the_files_of_the_page_are_served(client: Any) -> None:
    for name in ("index.html", "..%2fserver.py", "%2e%2e/server.py", "x"):
        assert client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("check", {}),
        ("check", {"text": "x"}),
        ("check", {"text": 1, "opened": 1}),
        ("check", {"text": "x", "opened": 1, "more": 1}),
        ("check", [1]),
        ("events", {"offset": True, "count": 1, "opened": 1}),
        ("page", {"offset": 0.5, "count": 1, "opened": 1}),
        ("open", {"data": "events.parquet"}),
        ("save", {"kind": "rule", "text": "", "name": "", "replace": 1, "opened": 1}),
        ("cancel", {"x": 1}),
        ("begin_replay", {"patterns": [], "live": False, "disorder": "", "opened": 1}),
        ("begin_replay", {"patterns": {}, "live": "yes", "disorder": "", "opened": 1}),
        ("end_live", {"opened": 1}),
        ("read_on", {"up_to": "1", "more": 0, "replay": 1, "opened": 1}),
        ("read_on", {"up_to": True, "more": 0, "replay": 1, "opened": 1}),
        ("put_pattern", {"name": "p", "text": None, "replay": 1, "opened": 1}),
        ("end_replay", {}),
    ],
)
def test_what_is_no_request_of_the_page(client: Any, path: str, body: Any) -> None:
    answer = client.post(f"/api/{path}", json=body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "BadRequest")


def test_contents_that_are_refused(client: Any) -> None:
    json_type = {"content-type": "application/json"}
    for content, headers in [
        (b"{", json_type),
        (b"\xff", json_type),
        (b"[" * 100_000, json_type),
        (b'{"text": "x"}', {"content-type": "text/plain"}),
        (b'{"text": "' + b"x" * server._LONGEST_REQUEST + b'"}', json_type),
    ]:
        assert client.post("/api/check", content=content, headers=headers).status_code == 400
    assert client.post("/api/nothing", json={}).status_code == 404
    assert client.get("/api/check").status_code == 405


# ---- The calls


def call(client: Any, name: str, arguments: dict[str, Any]) -> Any:
    """The answer to a call that repeats the number of the last opening."""
    if name not in ("open", "cancel", "end_replay"):
        arguments.setdefault("opened", client.opened)
    if name == "begin_replay":
        arguments = {"live": False, "disorder": ""} | arguments
    answer = client.post(f"/api/{name}", json=arguments)
    if name == "open" and answer.status_code == 200:
        client.opened = answer.json()["opened"]
    return answer


def asked(client: Any, name: str, /, **arguments: Any) -> Any:
    answer = call(client, name, arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: Any, name: str, /, **arguments: Any) -> dict[str, Any]:
    answer = call(client, name, arguments)
    assert answer.status_code == 422, answer.text
    return answer.json()["error"]


def test_a_visit(client: Any, folder: Path) -> None:
    begin = client.get("/api/begin").json()
    assert (begin["files"], begin["data"], begin["roles"]) == (
        ["events.parquet", "*.parquet"],
        "events.parquet",
        {"time": "t"},
    )
    opened = asked(client, "open", data="events.parquet", roles={"time": "t"})
    assert [one["name"] for one in opened["columns"]] == ["type", "t"]
    assert asked(client, "events", offset=1, count=2)["rows"] == [["B", 2], ["A", 3]]
    assert asked(client, "check", text=QUERY)["variables"] == ["a", "b"]
    assert asked(client, "check", text="SELECT")["error"]["kind"] == "QueryError"
    assert asked(client, "explain", text=QUERY)["text"]
    assert asked(client, "draw", text=QUERY)["dot"].startswith("digraph")
    found = asked(client, "run", text=QUERY)
    assert (found["count"], [one["rows"] for one in found["matches"]]) == (3, [[0, 1], [2, 3], [0, 3]])
    assert [one["rows"] for one in asked(client, "page", offset=2, count=5)["matches"]] == [[0, 3]]
    assert "does match" in asked(client, "why_not", text=QUERY)["text"]
    assert asked(client, "why_event", text=QUERY, event=1)["text"] == "Row 1 is in a match: a: row 0; b: row 1"
    step = asked(client, "step", text=QUERY, count=3)
    assert [one["rows"] for one in step["partial"]] == [[2]]
    saved = asked(client, "save", kind="query", text=QUERY, name="", replace=False)
    assert saved == {"text": f"{QUERY}\n", "name": ""}
    assert asked(client, "save", kind="query", text=QUERY, name="pairs.txt", replace=False)["name"] == "pairs.txt"
    assert (folder / "pairs.txt").read_text() == f"{QUERY}\n"
    assert (
        "there already" in refused(client, "save", kind="query", text="x", name="pairs.txt", replace=False)["message"]
    )
    assert "outside" in refused(client, "save", kind="query", text="x", name="../p.txt", replace=True)["message"]


def test_errors_have_their_place(client: Any) -> None:
    asked(client, "open", data="events.parquet", roles={"time": "t"})
    error = refused(client, "run", text="SELECT * FROM S WHERE A AS a FILTER a[tt > 1]")
    assert (error["kind"], error["start"], error["end"], error["hint"]) == ("QueryError", 38, 40, "did you mean 't'?")
    assert "outside" in refused(client, "open", data="../x.csv", roles={})["message"]
    assert "no column 'zeit'" in refused(client, "open", data="events.parquet", roles={"time": "zeit"})["message"]
    assert "is no role" in refused(client, "open", data="events.parquet", roles={"colour": "t"})["message"]
    assert [one["rows"] for one in asked(client, "run", text=QUERY)["matches"]] == [
        [0, 1],
        [2, 3],
        [0, 3],
    ]  # it is open still


def test_nothing_is_open_at_first(folder: Path) -> None:
    studio = Studio(Folder(folder))
    with client_of(studio, headers={server.HEADER: studio.token}) as client:
        client.opened = 0
        for name, arguments in [
            ("run", {"text": QUERY}),
            ("save", {"kind": "rule", "text": "", "name": "", "replace": False}),
        ]:
            assert "no events are open" in refused(client, name, **arguments)["message"]


def test_a_replay(client: Any, studio: Studio) -> None:
    asked(client, "open", data="events.parquet", roles={"time": "t"})
    begun = asked(client, "begin_replay", patterns={"pairs": QUERY})
    replay = begun["replay"]
    assert (begun["read"], begun["patterns"]) == (
        0,
        [{"name": "pairs", "text": QUERY, "count": 0, "stopped": None}],
    )
    found = asked(client, "read_on", up_to=2, more=0, replay=replay)  # JavaScript writes 2.0 so
    assert (found["read"], found["count"], found["matches"][0]["rows"]) == (2, 1, [0, 1])
    error = refused(client, "put_pattern", name="pairs", text="SELECT * FROM S WHERE A AS", replay=replay)
    assert (error["kind"], error["line"]) == ("QueryError", 1)
    put = asked(client, "put_pattern", name="pairs", text=QUERY.replace("; B", "+; B"), replay=replay)
    assert put["read"] == 2
    found = asked(client, "read_on", up_to=1e300, more=0, replay=replay)
    assert (found["ended"], found["count"], found["matches"][0]["rows"]) == (True, 2, [2, 3])
    assert "no event comes any more" in refused(client, "put_pattern", name="x", text=QUERY, replay=replay)["message"]
    # Another page begins one, and this one is told so.
    other = asked(client, "begin_replay", patterns={})["replay"]
    assert "another page" in refused(client, "read_on", up_to=1.0, more=0, replay=replay)["message"]
    client.post("/api/end_replay", json={"replay": replay})  # it is not this page's any more
    assert asked(client, "read_on", up_to=1.0, more=0, replay=other)["read"] == 1
    assert client.post("/api/end_replay", json={"replay": other}).status_code == 200
    assert "has ended" in refused(client, "read_on", up_to=1.0, more=0, replay=other)["message"]
    process = studio.workers["replay"]._process
    assert process is not None
    assert process.wait(30) != 0
    assert "is no text" in refused(client, "begin_replay", patterns={"p": 1})["message"]
    assert refused(client, "begin_replay", patterns={"p": "SELECT"})["kind"] == "QueryError"
    asked(client, "open", data="events.parquet", roles={})
    assert "column of time" in refused(client, "begin_replay", patterns={})["message"]


def test_a_live_stream(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a.csv").write_text("type,t\nA,1\n")
    pq.write_table(pa.table({"type": ["A"], "t": [1]}), tmp_path / "in/1.parquet")
    studio = Studio(Folder(tmp_path))
    with client_of(studio, headers={server.HEADER: studio.token}) as client:
        assert client.get("/api/begin").json()["files"] == ["a.csv", "in/1.parquet", "in/*.parquet"]
        asked(client, "open", data="a.csv", roles={"time": "t"})
        live = {"patterns": {"pairs": QUERY}, "live": True}
        replay = asked(client, "begin_replay", **live)["replay"]
        assert asked(client, "read_on", up_to=1e300, more=0, replay=replay)["read"] == 1
        with (tmp_path / "a.csv").open("a") as file:
            file.write("B,2\nC,1\nB,x\n")
        found = asked(client, "read_on", up_to=1e300, more=0, replay=replay)
        assert (found["read"], found["count"], found["live"]["late"], found["live"]["bad"]) == (2, 1, 1, 1)
        assert asked(client, "end_live", replay=replay)["ended"]
        assert "disorder='x'" in refused(client, "begin_replay", **live, disorder="x")["message"]
        opened = asked(client, "open", data="in/*.parquet", roles={"time": "t"})
        assert opened["rows"] == 1
        replay = asked(client, "begin_replay", **live)["replay"]
        assert asked(client, "read_on", up_to=1e300, more=0, replay=replay)["read"] == 1
        pq.write_table(pa.table({"type": ["B"], "t": [2]}), tmp_path / "in/2.parquet")
        found = asked(client, "read_on", up_to=1e300, more=0, replay=replay)
        assert (found["read"], found["matches"][0]["rows"]) == (2, [0, 1])
        saved = asked(client, "save", kind="python", text=QUERY, name="", replace=False)
        assert "'in/*.parquet'" in saved["text"]
        asked(client, "open", data="in/1.parquet", roles={"time": "t"})
        assert "does not grow" in refused(client, "begin_replay", **live)["message"]
        replay = asked(client, "begin_replay", patterns={})["replay"]
        assert "ends by itself" in refused(client, "end_live", replay=replay)["message"]


def test_a_replay_whose_process_has_ended(client: Any, studio: Studio) -> None:
    asked(client, "open", data="events.parquet", roles={"time": "t"})
    replay = asked(client, "begin_replay", patterns={})["replay"]
    process = studio.workers["replay"]._process
    assert process is not None
    process.kill()
    process.wait()
    assert "begin it again" in refused(client, "read_on", up_to=1.0, more=0, replay=replay)["message"]


def test_a_page_is_not_shown_what_another_one_has_opened(client: Any) -> None:
    asked(client, "open", data="events.parquet", roles={"time": "t"})
    first = client.opened
    asked(client, "open", data="events.parquet", roles={})
    assert "another page" in refused(client, "run", text=QUERY, opened=first)["message"]
    assert asked(client, "events", offset=0, count=1)["at"] is None


# ---- Bounds


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Studio, Any]]:
    """A studio over events of which a query takes too long."""
    tmp_path = tmp_path_factory.mktemp("busy")
    pq.write_table(
        pa.table({"type": ["A"] * 200_000, "t": range(200_000), "v": range(200_000)}), tmp_path / "e.parquet"
    )
    studio = Studio(Folder(tmp_path), "e.parquet", rows=200_000, seconds=60)
    with client_of(studio, headers={server.HEADER: studio.token}) as client:
        asked(client, "open", data="e.parquet", roles={"time": "t"})
        yield studio, client


#: Every pair of events is asked, and none is a match.
SLOW = "PATTERN SEQ(A a, A b) WHERE skip_till_any_match { a.v > b.v }"


def test_a_call_has_its_time(busy: tuple[Studio, Any]) -> None:
    studio, client = busy
    studio.seconds = 2
    assert refused(client, "run", text=SLOW)["message"] == "stopped: it took longer than 2 seconds"
    studio.seconds = 60
    assert asked(client, "run", text="SELECT * FROM S WHERE A AS a FILTER a[v = 7]")["count"] == 1


def test_a_run_is_cancelled_while_others_are_answered(busy: tuple[Studio, Any]) -> None:
    studio, client = busy
    answers: list[Any] = []
    running = threading.Thread(target=lambda: answers.append(refused(client, "run", text=SLOW)))
    running.start()
    while not studio.workers["runs"]._lock.locked():
        time.sleep(0.01)
    assert asked(client, "check", text=SLOW)["error"] is None
    asked(client, "cancel")
    running.join(30)
    assert answers[0]["message"] == "stopped: it was cancelled"
    assert asked(client, "page", offset=0, count=5)["matches"] == []


def test_a_process_that_has_ended_is_started_anew(client: Any, studio: Studio) -> None:
    asked(client, "open", data="events.parquet", roles={"time": "t"})
    process = studio.workers["quick"]._process
    assert process is not None
    process.kill()
    process.wait()
    assert asked(client, "check", text=QUERY)["error"] is None


def test_a_process_that_ends_in_the_middle_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [sys.executable, "-c", "import sys; sys.stdin.readline(); sys.stdout.write('{\"value\": 1')"]
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: popen(ends, **more))
    worker = Worker()
    with pytest.raises(WorkerError, match="its process has ended"):
        worker.ask("check", {"text": QUERY}, 60)
    assert closed(worker._process)


def closed(process: Any) -> bool:
    return bool(process.stdin.closed and process.stdout.closed)


def test_no_pipe_stays_open() -> None:
    worker, processes = Worker(), []
    for ends in ("kill", "ask", "close"):
        with pytest.raises(WorkerError):  # no events are open
            worker.ask("check", {"text": QUERY}, 60)
        process = worker._process
        assert process is not None
        processes.append(process)
        if ends == "kill":
            process.kill()
            process.wait()
        elif ends == "close":
            worker.close()
            assert closed(process)
    assert closed(processes[0])
    assert processes[1] is processes[2]


def test_names_that_are_none_are_refused(client: TestClient) -> None:
    asked(client, "open", data="events.parquet", roles={"time": "t"})
    long = "x" * 5_000
    for name in (f"{long}.txt", f"{long}/a.txt", "a\0.txt"):
        for told in (
            refused(client, "save", kind="query", text=QUERY, name=name, replace=False)["message"],
            refused(client, "open", data=name, roles=NO_ROLES)["message"],
        ):
            assert "is no path of a file" in told
            assert len(told) < 200
    json_headers = {"content-type": "application/json"}
    saving = {"kind": "query", "text": QUERY, "name": "\ud800", "replace": False, "opened": 1}
    for call, body in (
        ("save", saving),
        ("open", {"data": "\ud800", "roles": {}}),
        ("open", {"data": "a", "roles": {"\ud800": 1}}),
    ):
        answer = client.post(f"/api/{call}", content=json.dumps(body), headers=json_headers)
        assert (answer.status_code, answer.json()["error"]["message"]) == (400, "the content is no JSON")
    for name, reason in ((long, "File name too long"), ("\ud800", "surrogates not allowed")):
        with pytest.raises(stretto.OptionError, match=rf"is no path of a file: .*{reason}"):
            stretto.match(QUERY, name)
