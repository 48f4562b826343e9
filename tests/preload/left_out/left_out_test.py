#!/usr/bin/env python3
"""Each test that shim/coverage.txt names for a hook fails if only that hook is left out, and passes if none is:
CTEST BUILD LIBRARY. Runs one test per processor at a time, each until its first failure."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parents[3] / "scripts")]
from coverage_list import read_tree  # noqa: E402
from harness import expect, expect_that, main  # noqa: E402

CTEST, BUILD, LIBRARY = sys.argv[1:]


def known_tests():
    listed = subprocess.run([CTEST, "--test-dir", BUILD, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return {test["name"]: test for test in json.loads(listed.stdout)["tests"]}


def status(test, hook):
    """The exit status of the test's own command under the core that leaves out `hook`, and its output."""
    properties = {item["name"]: item["value"] for item in test["properties"]}
    settings = dict(setting.split("=", 1) for setting in properties.get("ENVIRONMENT", []))
    settings |= {"PRELOAD_LIBRARIES": LIBRARY, "LEFT_OUT": hook, "PRELOAD_UNTIL_FAILED": "1"}
    try:
        done = subprocess.run(test["command"], cwd=properties["WORKING_DIRECTORY"], env=os.environ | settings, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=properties.get("TIMEOUT", 240), check=False)
    except subprocess.TimeoutExpired as stuck:
        return -1, f"it hangs, output {stuck.stdout!r}"
    return done.returncode, done.stdout


def passes(run):
    def case(_):
        code, said = run.result()
        expect(f"status, output {said[-2000:]}", code, 0)
    return case


def fails(run):
    def case(_):
        code, said = run.result()
        expect_that(f"it passes without the hook: {said[-2000:]}", code != 0)
        expect_that(f"it did not finish: {said[-2000:]}", "\ncovered: " in said)
    return case


tests = known_tests()
shown = [(row.export, name) for row in read_tree()[0] if row.family for name in row.statement.tests]
named = sorted({name for _, name in shown})
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as runs:
    cases = {f"{name} passes": passes(runs.submit(status, tests[name], "")) for name in named}
    cases |= {f"{name} misses {hook}": fails(runs.submit(status, tests[name], hook)) for hook, name in shown}
    main(cases)
