#!/usr/bin/env python3
"""Runs what only hardware can answer, and writes the answers as JSON (tests/gpu/README.md).

Exit status: 0 nothing failed, 1 something did, 2 usage, 3 the build failed, 77 there is no device.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True  # the source tree is only read
import conformance  # noqa: E402
import costs  # noqa: E402
import demo  # noqa: E402
import environment  # noqa: E402
import frameworks  # noqa: E402
import items  # noqa: E402
import live  # noqa: E402
import members  # noqa: E402
import pack  # noqa: E402
import questions  # noqa: E402
import results  # noqa: E402
import runs  # noqa: E402
import runtime  # noqa: E402
import tree as trees  # noqa: E402
import verbs  # noqa: E402
import wheel  # noqa: E402

# In order of value: the first ones are reached even where time is short. Each returns its tests.
ITEMS = (environment.tests, conformance.tests, questions.native_tests, questions.tests_under_ration, demo.tests, live.tests,
         verbs.tests, wheel.tests, runtime.tests, frameworks.tests, members.kill_tests, members.nvml_tests, costs.tests,
         members.share_tests)
SIM_SECONDS, SECONDS = 170, 520
USAGE, NOT_BUILT, NO_DEVICE = 2, 3, 77


def regex(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error


def duration(text):
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no time to run for")
    return seconds


def parse():
    parser = argparse.ArgumentParser(prog="gpu-check.sh", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--prebuilt", type=pathlib.Path, metavar="FOLDER",
        help="a build folder, or what --pack copied of one; without it, what is needed is built in build/ first")
    add("--sim", action="store_true", help="over the simulated driver: tests the check itself")
    add("--full", action="store_true", help="also what is slow")
    add("--out", type=pathlib.Path, metavar="FILE",
        help="default: tests/gpu/results/GPU-DATE.json, over the simulator gpu-check.json in the build folder")
    add("--only", type=regex, default=regex(""), metavar="REGEX", help="the tests whose names match, as --list prints them")
    add("--skip", type=regex, metavar="REGEX", help="not the tests whose names match")
    add("--seconds", type=duration, metavar="N",
        help=f"for all together; what is not reached is skipped (default {SECONDS}, with --sim {SIM_SECONDS})")
    add("--raw", type=pathlib.Path, metavar="FOLDER", help="keeps the whole output of each run")
    add("--python", metavar="FILE", help="the interpreter that has the frameworks")
    add("--wheel", type=pathlib.Path, metavar="FILE", help="the wheel to install (default: that of the pack, or of dist/)")
    add("--list", action="store_true", help="prints the names of the tests, and runs nothing")
    add("--pack", type=pathlib.Path, metavar="FOLDER", help="copies what a machine without a build needs, and runs nothing")
    arguments = parser.parse_args()
    if arguments.prebuilt and not (arguments.prebuilt / "bin/ration").exists():
        parser.error(f"{arguments.prebuilt} has no bin/ration")
    if arguments.wheel and not arguments.wheel.is_file():
        parser.error(f"{arguments.wheel} is no file")
    return arguments


def names_of(chosen):
    return [test.name for tests in chosen for test in tests]


def nothing_chosen(arguments, check):
    """What to say where no test is left to run."""
    pattern = arguments.only.pattern
    every = names_of([item(check, arguments) for item in ITEMS])
    if any(arguments.only.search(name) for name in every):
        return f"--skip {arguments.skip.pattern!r} leaves no test"
    parts = {".".join(name.split(".")[:words]) for name in every for words in (1, 2, 3)}
    near = difflib.get_close_matches(pattern, sorted(parts), 3)
    return f"no test matches --only {pattern!r}" + (f"; near it: {', '.join(near)}" if near else "") + "; --list prints the names"


def has_built():
    return subprocess.run([trees.SOURCE / "scripts/gpu-check.sh", "--build"], check=False).returncode == 0


def commit_of(build):
    stated = os.environ.get("RATION_COMMIT")
    if stated:
        return stated
    try:
        return subprocess.run(["git", "-C", str(trees.SOURCE), "describe", "--always", "--dirty"], check=True,
                              capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        file = build / "tests/gpu/commit"
        return file.read_text(encoding="utf-8").strip() if file.exists() else "unknown"


def run_test(test, results_):
    """Runs one test; whatever it raises becomes its result."""
    try:
        outcome = test.body()
    except items.Skip as reason:
        outcome = items.Outcome("skipped", note=str(reason))
    except runs.OutOfTime:
        outcome = items.Outcome("skipped", note="no time left")
    except Exception as failure:  # pylint: disable=broad-except
        outcome = items.Outcome("failed", {"traceback": traceback.format_exc().splitlines()[-6:]}, repr(failure))
    if outcome is not None:  # None: it has added its results itself
        results_.add(test.name, outcome.status, outcome.figures, outcome.note)


def run_item(tests, results_):
    lanes = {}
    for test in tests:
        if test.lane:
            lanes.setdefault(test.lane, []).append(test)
        else:
            run_test(test, results_)
    if lanes:
        with concurrent.futures.ThreadPoolExecutor(len(lanes)) as workers:
            list(workers.map(lambda lane: [run_test(test, results_) for test in lane], lanes.values()))


def wanted_tests(arguments, check):
    for item in ITEMS:
        yield [test for test in item(check, arguments) if
               arguments.only.search(test.name) and not (arguments.skip and arguments.skip.search(test.name))]


def end_on_signal(scratch, state):
    """The results are on disk; only processes and folders are left to clean up."""
    def end(number, _):
        runs.kill_all()
        clean(scratch, state)
        os._exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def clean(*folders):
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    arguments = parse()
    # The names of tests need no build, so that a mistake in a pattern is found before one.
    plan = items.Check(trees.Tree(arguments.prebuilt, arguments.sim, None, None), None, None, arguments.full)
    names = names_of(wanted_tests(arguments, plan))
    if not names:
        print(f"gpu-check: {nothing_chosen(arguments, plan)}", file=sys.stderr)
        return USAGE
    if arguments.list:
        print(*names, sep="\n")
        return 0
    if not arguments.prebuilt and not has_built():
        return NOT_BUILT
    build = (arguments.prebuilt or trees.SOURCE / "build").resolve()
    return pack.pack(build, arguments.pack, commit_of(build)) if arguments.pack else run_all(arguments, build)


def run_all(arguments, build):
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="ration-check-"))
    (scratch / "machine").mkdir()
    state = trees.make_state_folder(scratch)
    end_on_signal(scratch, state)
    if arguments.raw:
        arguments.raw.mkdir(parents=True, exist_ok=True)
    date = time.strftime("%Y-%m-%dT%H-%M-%S")
    out = arguments.out or (build / "gpu-check.json" if arguments.sim else trees.HERE / "results" / f"gpu-{date}.json")
    begun = time.monotonic()
    clock = runs.Clock(arguments.seconds or (SIM_SECONDS if arguments.sim else SECONDS))
    tree = trees.Tree(build, arguments.sim, scratch, state)
    try:
        check = items.Check(tree, None, clock, arguments.full, arguments.raw)
        if not arguments.sim and environment.is_without_device(check):
            print("gpu-check: no device: nothing was checked", file=sys.stderr)
            return NO_DEVICE
        check.results = results.Results(out, date, commit_of(build))
        with members.Device(check):  # keeps the device initialised between the programs
            for tests in wanted_tests(arguments, check):
                run_item(tests, check.results)
    finally:
        clean(scratch, state)
    if not arguments.out and not arguments.sim:
        out = environment.rename(out, check.results, date)
    failed = check.results.count("failed")
    print(f"gpu-check: {check.results.count('ok')} ok, {failed} failed, {check.results.count('skipped')} skipped "
          f"in {time.monotonic() - begun:.0f} s: {out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
