#!/usr/bin/env python3
"""`ration find-min` finds the smallest limit with which a command succeeds, and says where there is none."""
import json
import os
import pathlib
import signal
import subprocess

from harness import BUILD, HANG, MIB, PROGRAMS, command_environment, expect, expect_ended, expect_that, main
from refused_line import refused

RATION = BUILD / "bin/ration"
ADD_VECTORS = BUILD / "examples/planted_fault/add_vectors"
NEEDED = 48 * MIB


def find_min(*words, status=0, **settings):
    done = subprocess.run([RATION, "find-min", "--sim", "1GiB", *map(str, words)], capture_output=True, text=True, timeout=HANG, check=False,
                          **({"env": command_environment(), "stdin": subprocess.DEVNULL} | settings))
    expect(f"status, stderr {done.stderr!r}", done.returncode, status)
    return done.stdout.splitlines(), [line.removeprefix("ration: ") for line in done.stderr.splitlines()]


def fixed_need(_):
    """Exact to the byte where that is asked for; each run is a line."""
    lines, said = find_min("--tolerance", "1", "--", ADD_VECTORS)
    expect("stdout", lines, [f"peak={NEEDED}", f"min_limit={NEEDED}"])
    runs = [line for line in said if line.startswith("find-min: ")]
    expect_that(f"the first run is without a limit: {runs[0]}", runs[0].startswith("find-min: no limit: succeeds"))
    expect_that(f"one byte less was tried: {runs}", any(f"({NEEDED - 1} bytes): fails, killed by signal 11" in line for line in runs))
    expect_that(f"the last run is with the limit found: {runs[-1]}", runs[-1].startswith(f"find-min: once more, limit 48MiB ({NEEDED} bytes): succeeds"))
    expect("the output of the first run alone is shown", said.count("add_vectors: done"), 1)


def beside_other_limits(folder):
    """A limit of a settings file, or of an option, holds in the first run as well, which is said."""
    path = pathlib.Path(folder) / "ration/config.json"
    path.parent.mkdir()
    path.write_text('{"limit": "512MiB"}')
    settings = {"env": command_environment() | {"XDG_CONFIG_HOME": str(folder)}}
    _, said = find_min("--tolerance", "1MiB", "--", ADD_VECTORS, **settings)
    expect_that(said, any(line.startswith(f"find-min: no limit but {path}:1:2: limit=512MiB: succeeds") for line in said))
    _, said = find_min("--reserve", "256MiB", "--", "sh", "-c", "exit 3", status=125, **settings)
    expect("the last line", said[-1], f"find-min: the command fails with no limit but {path}:1:2: limit=512MiB, --reserve 256MiB: exit status 3")


def helpful(_):
    """The help has only options that can be given, and examples of its own verb."""
    for verb, not_taken in (("find-min", ["--limit"]), ("find-faults", ["--log", "--fail"])):
        said = subprocess.run([RATION, verb, "--help"], env=command_environment(), capture_output=True, text=True, timeout=HANG, check=True)
        options = {line.split()[0] for line in said.stdout.splitlines() if line.startswith("  --")}
        expect(f"options of {verb} that are refused", options & set(not_taken), set())
        examples = [line for line in said.stdout.splitlines() if line.startswith("  ration ")]
        expect_that(f"examples of {verb}: {examples}", examples and all(f"ration {verb} " in line or "--fail nth=" in line for line in examples))
        done = subprocess.run([RATION, verb, f"{not_taken[0]}=1g", "true"], env=command_environment(), capture_output=True, text=True,
                              timeout=HANG, check=False)
        expect("the option", (done.returncode, done.stderr), (2, f"ration: {verb}: {not_taken[0]} cannot be given: each run has its own\n"))


def tolerated(words, within):
    def case(_):
        found = int(find_min(*words, "--", ADD_VECTORS)[0][-1].removeprefix("min_limit="))
        expect_that(f"{found} is within {within}", NEEDED <= found <= NEEDED + within)
    return case


def as_json(_):
    lines, _ = find_min("--json", "--", ADD_VECTORS)
    found = json.loads("\n".join(lines))
    expect("figures", (found["schema"], found["min_limit"], found["peak_bytes"], found["confirmed"], found["command"]),
           ("ration.find_min/1", NEEDED, NEEDED, True, str(ADD_VECTORS)))
    runs = found["runs"]
    expect("the first and the last run", [(each["limit"], each["succeeded"]) for each in (runs[0], runs[-1])],
           [(None, True), (NEEDED, True)])
    expect("the failed ones crashed", {each["status"] for each in runs if not each["succeeded"]}, {139})
    expect_that("none below suffices", all(each["limit"] < NEEDED for each in runs if not each["succeeded"]))


def adapts(_):
    """A program that does without what it is refused needs the least limit there is."""
    lines, said = find_min("--", PROGRAMS / "steps", "init", "context=0", "alloc=100m")
    expect("stdout", lines, [f"peak={100 * MIB}", f"min_limit={MIB}"])
    expect_that(f"few runs: {said}", sum("find-min: " in line for line in said) <= 6)
    expect_that(f"and why is not known: {said[-1]}", said[-1].startswith("find-min: under this limit requests were refused, yet the command exits with 0"))


def fails_anyway(_):
    lines, said = find_min("--", "sh", "-c", "exit 3", status=125)
    expect("stdout, the last line", (lines, said[-1]), ([], "find-min: the command fails with no limit: exit status 3"))


def not_found(_):
    lines, said = find_min("--", "no_such_command", status=127)
    expect_that(f"{said}", not lines and any("not found" in line for line in said))


def flaky(folder):
    """Two runs succeed, and the one that is to confirm the limit fails."""
    count = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; [ $n -lt 2 ]"
    lines, said = find_min("--", "sh", "-c", count, status=1, cwd=folder)
    expect("stdout", lines[-1], f"min_limit={MIB}")
    expect_that(f"{said[-1]}", "differs from run to run" in said[-1])


def too_long(folder):
    """A run that hangs under a limit has failed, and is ended with what it started."""
    os.mkfifo(pathlib.Path(folder) / "never")
    hang = '[ -z "$RATION_LIMIT" ] || { (trap "" TERM; read x <never) & echo $! $$ >>pids; read x <never; }'
    lines, said = find_min("--timeout", "2s", "--", "sh", "-c", hang, status=1, cwd=folder)
    expect_that(f"{said}", any("took longer than 2000 ms" in line for line in said) and lines)
    for pid in (pathlib.Path(folder) / "pids").read_text().split():
        expect_ended(pid)


def interrupted(number):
    def case(folder):
        os.mkfifo(pathlib.Path(folder) / "never")
        with subprocess.Popen([RATION, "find-min", "--", "sh", "-c", "echo $$; read x <never"], env=command_environment(), cwd=folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
            pid = search.stderr.readline().strip()
            search.send_signal(number)
            out, _ = search.communicate(timeout=HANG)
        expect("status, stdout", (search.returncode, out), (128 + number, ""))
        expect_ended(pid)
    return case


def input_again(folder):
    """Each run reads a file on stdin from its start."""
    path = pathlib.Path(folder) / "input"
    path.write_text("word\n")
    with open(path, encoding="utf-8") as file:
        lines, _ = find_min("--", "grep", "-q", "word", stdin=file)
    expect("stdout", lines[-1], f"min_limit={MIB}")


def without_the_variable(_):
    """The limit of the environment is not that of the first run."""
    done = subprocess.run([RATION, "find-min", "--sim", "1GiB", "--", ADD_VECTORS], env=command_environment() | {"RATION_LIMIT": "16MiB"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG, check=False)
    expect("stdout", done.stdout.splitlines()[-1:], [f"min_limit={NEEDED}"])


main({"beside other limits": beside_other_limits, "a fixed need": fixed_need,
      "the help": helpful,
      "the default tolerance": tolerated([], 2 * MIB),
      "a tolerance in percent": tolerated(["--tolerance", "10%"], NEEDED // 10),
      "JSON": as_json,
      "a program that adapts": adapts,
      "a command that fails anyway": fails_anyway,
      "a command that is not there": not_found,
      "a flaky command": flaky,
      "a run that takes too long": too_long,
      "SIGINT": interrupted(signal.SIGINT),
      "SIGTERM": interrupted(signal.SIGTERM),
      "a file on stdin": input_again,
      "RATION_LIMIT is set": without_the_variable,
      "no command": refused(["find-min"], "no command"),
      "a limit": refused(["find-min", "--limit", "1g", "--", "true"], "--limit cannot be given"),
      "a wrong tolerance": refused(["find-min", "--tolerance", "3x", "--", "true"], "--tolerance"),
      "a wrong timeout": refused(["find-min", "--timeout", "soon", "--", "true"], "--timeout"),
      "a wrong option": refused(["find-min", "--first", "3", "--", "true"], "--first is not an option")})
