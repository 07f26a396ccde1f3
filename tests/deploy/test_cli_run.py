"""`run`, `runs`, `timeline`, `facts`: results on standard output, progress beside, one line for a failure."""

import json
import subprocess
from pathlib import Path

import pytest

from . import command_line
from .command_line import Here, running
from .scene import Deployment, mcp_server

TASK = "call the tool [bold]now[/bold], then answer; this is longer than most terminals are wide, to be sure"


@pytest.fixture(scope="module")
def finished(up: Deployment) -> command_line.Done:
    """A run by the program itself, in a pipe."""
    agent = up.agent(tools={"mcp": {"raw": mcp_server()}})
    return command_line.run("run", agent, TASK, cwd=up.folder)


def run_id(done: command_line.Done) -> str:
    return done.err.splitlines()[0]


def wait_for_timeline(up: Deployment, here: Here, run: str) -> None:
    """Wait until telemetry has written all of a run: it follows, and no run waits for it (A43)."""

    def written() -> bool:
        done = here("--config", up.config, "timeline", "--json", run)
        return done.status == 0 and json.loads(done.out)["status"] == "finished"

    command_line.until(written, f"{run} never came into the timeline")


def test_the_answer_alone_is_on_standard_output_and_the_exit_status_is_0(finished: command_line.Done) -> None:
    assert (finished.status, finished.out) == (0, "An answer [with] brackets.\n")


def test_progress_goes_to_standard_error_one_line_a_step_beginning_with_the_run(
    finished: command_line.Done,
) -> None:
    lines = finished.err.splitlines()
    assert lines[0].startswith("run-")
    assert lines.count("  → raw.t") == 1
    assert any(line.startswith("  ← succeeded") for line in lines)
    assert lines[-1].startswith("turn 2 model: answer An answer [with] brackets.")


def test_a_long_line_of_progress_is_not_wrapped_in_a_pipe(up: Deployment, here: Here) -> None:
    done = here("--config", up.config, "run", up.agent(), "long answer")
    (line,) = [line for line in done.err.splitlines() if line.startswith("turn 1")]
    assert len(line) > 100
    assert len(done.out.splitlines()) == 1


def test_json_is_one_line_with_the_run_and_nothing_else_anywhere(up: Deployment, here: Here) -> None:
    done = here("--config", up.config, "run", "--json", up.agent(), "long answer")
    assert (done.status, done.err, len(done.out.splitlines())) == (0, "", 1)
    result = json.loads(done.out)
    assert set(result) == {"run", "status", "answer", "error", "turns", "knowledge_ids"}
    assert (result["status"], result["turns"], result["error"]) == ("finished", 1, None)
    assert result["run"].startswith("run-")


def test_a_run_that_fails_says_why_in_one_line_after_its_progress_and_exits_with_1(
    up: Deployment, here: Here
) -> None:
    done = here("--config", up.config, "run", up.agent(), "no key")
    assert (done.status, done.out) == (1, "")
    last = done.err.splitlines()[-1]
    assert "the key is wrong" in command_line.one_line(last)
    assert "model.api_key" in last
    assert run_id(done) in last
    done = here("--config", up.config, "run", "--json", up.agent(), "no key")
    assert done.status == 1
    assert json.loads(done.out)["status"] == "failed"
    assert "the key is wrong" in json.loads(done.out)["error"]


def test_an_empty_task_and_an_impossible_project_are_refused_before_anything_starts(
    up: Deployment, here: Here
) -> None:
    done = here("--config", up.config, "run", up.agent(), "  ")
    assert "task: it is empty" in done.one_line(2)
    done = here("--config", up.config, "run", "--project", "a b", up.agent(), "x")
    assert "--project" in done.one_line(2)


def test_runs_lists_the_newest_first_and_a_row_is_a_line_in_a_pipe(
    up: Deployment, finished: command_line.Done, here: Here
) -> None:
    later = run_id(here("--config", up.config, "run", up.agent("later"), "long answer " + "x" * 120))
    wait_for_timeline(up, here, later)
    done = here("--config", up.config, "runs", "--json", "--limit", "1000")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert (done.status, rows[0]["run"]) == (0, later)
    assert run_id(finished) in [row["run"] for row in rows]
    assert all(set(row) == set(rows[0]) for row in rows)
    done = here("--config", up.config, "runs", "--limit", "1")
    (row,) = [line for line in done.out.splitlines() if "run-" in line]
    assert later in row
    assert "x" * 120 in row


def test_timeline_shows_the_run_as_a_tree_and_as_json(
    up: Deployment, finished: command_line.Done, here: Here
) -> None:
    wait_for_timeline(up, here, run_id(finished))
    done = here("--config", up.config, "timeline", run_id(finished))
    assert done.status == 0
    assert "raw.t succeeded" in done.out
    assert f"task: {TASK}" in done.out, "what looks like markup is text"
    assert "answer: An answer [with] brackets." in done.out
    done = here("--config", up.config, "timeline", "--json", run_id(finished))
    view = json.loads(done.out)
    assert (view["run"], view["status"]) == (run_id(finished), "finished")
    assert view["turns"][0]["block"] is None, "a key is there whatever it holds"


def test_timeline_of_an_unknown_run_says_how_to_find_one(up: Deployment, here: Here) -> None:
    done = here("--config", up.config, "timeline", "run-0000")
    assert "temporality runs" in done.one_line(2)


def test_facts_are_the_streams_own_lines_of_one_run_or_of_all(
    up: Deployment, finished: command_line.Done, here: Here
) -> None:
    command_line.until(
        lambda: any(fact["kind"] == "run.finished" for fact in facts_of(up, here, run_id(finished))),
        "the last fact of the run never came",
    )
    of_one = facts_of(up, here, run_id(finished))
    assert {fact["run"] for fact in of_one} == {run_id(finished)}
    assert [of_one[0]["kind"], of_one[-1]["kind"]] == ["run.started", "run.finished"]
    of_all = facts_of(up, here)
    assert len({fact["run"] for fact in of_all}) > 1
    assert len(of_all) > len(of_one)
    assert facts_of(up, here, "run-0000") == []


def facts_of(up: Deployment, here: Here, *run: str) -> list[dict[str, object]]:
    done = here("--config", up.config, "facts", *run)
    assert done.status == 0
    return [json.loads(line) for line in done.out.splitlines()]


def test_facts_follow_shows_what_happens_as_it_happens_until_ctrl_c(up: Deployment, here: Here) -> None:
    with running("facts", "--follow", cwd=up.folder) as follower:
        follower.wait_for("run.")  # it has begun to follow: it shows what there was
        before = len(follower.said)
        done = here("--config", up.config, "run", up.agent(), "long answer")
        line = follower.wait_for(f'"run":"{run_id(done)}"', after=before)
        assert json.loads(line)["kind"] == "run.started"
        assert follower.end() == 130
        assert "Traceback" not in follower.said
    assert json.loads(follower.said.splitlines()[-1])


def test_a_reader_that_goes_away_ends_facts_without_a_word(up: Deployment, here: Here) -> None:
    here("--config", up.config, "run", up.agent(), "long answer")
    with subprocess.Popen(
        [command_line.PROGRAM, "facts", "--follow"],
        cwd=up.folder,
        env=command_line.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as follower:
        try:
            assert follower.stdout is not None
            assert follower.stderr is not None
            assert b"run.started" in follower.stdout.readline()
            follower.stdout.close()
            here("--config", up.config, "run", up.agent(), "long answer")
            assert follower.wait(command_line.DEADLINE_S) == 1
            assert follower.stderr.read() == b""
        finally:
            follower.kill()


def test_without_a_deployment_run_says_how_to_start_one(tmp_path: Path, up: Deployment, here: Here) -> None:
    config = tmp_path / "t.yaml"
    config.write_text(json.dumps({"data_dir": str(tmp_path / "none")}))
    commands = (("run", up.agent(), "x"), ("facts",), ("runs",), ("timeline", "r"), ("knowledge", "list"))
    for command in commands:
        done = here("--config", config, *command)
        assert "temporality up" in done.one_line(2)
    assert not (tmp_path / "none").exists(), "asking leaves nothing behind"
