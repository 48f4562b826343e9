#!/usr/bin/env python3
"""Runs what only hardware can answer, and writes the answers as JSON (README.md; scripts/gpu-check.sh builds first).

check.py --prebuilt FOLDER    a build folder, or what --pack copied of one
    --sim                     over the simulated driver: tests the check itself
    --full                    also what is slow
    --out FILE                default: tests/gpu/results/GPU-DATE.json, over the simulator FOLDER/gpu-check.json
    --only REGEX, --skip REGEX    by the names of the tests, as --list prints them
    --seconds N               for all together; what is not reached is skipped (default 520)
    --raw FOLDER              keeps the whole output of each run
    --python FILE             the interpreter that has the frameworks
    --list                    prints the names
    --pack FOLDER             copies what another machine needs, and runs nothing

Exit status: 0 nothing failed, 1 something did, 2 usage, 77 there is no device.
"""
import argparse
import concurrent.futures
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
import members  # noqa: E402
import pack  # noqa: E402
import questions  # noqa: E402
import results  # noqa: E402
import runs  # noqa: E402
import runtime  # noqa: E402
import tree as trees  # noqa: E402

# In order of value: the first ones are reached even where time is short. Each returns its tests.
ITEMS = (environment.tests, conformance.tests, questions.native_tests, questions.tests_under_ration, demo.tests, runtime.tests,
         frameworks.tests, members.kill_tests, members.nvml_tests, costs.tests, members.share_tests)
SIM_SECONDS, SECONDS, NO_DEVICE = 170, 520, 77


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--sim", "--full", "--list"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--prebuilt", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--skip", type=re.compile)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--raw", type=pathlib.Path)
    parser.add_argument("--python")
    parser.add_argument("--pack", type=pathlib.Path)
    arguments = parser.parse_args()
    if not (arguments.prebuilt / "bin/ration").exists():
        parser.error(f"{arguments.prebuilt} has no bin/ration")
    return arguments


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
    build = arguments.prebuilt.resolve()
    if arguments.pack:
        return pack.pack(build, arguments.pack, commit_of(build))
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
        chosen = list(wanted_tests(arguments, check))
        if arguments.list:
            print(*(test.name for tests in chosen for test in tests), sep="\n")
            return 0
        if not arguments.sim and environment.is_without_device(check):
            print("gpu-check: no device: nothing was checked", file=sys.stderr)
            return NO_DEVICE
        check.results = results.Results(out, date, commit_of(build))
        with members.Device(check):  # keeps the device initialised between the programs
            for tests in chosen:
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
