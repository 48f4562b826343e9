#!/usr/bin/env python3
"""Builds and runs one test case, given its name or a unique part of it.

test_case.py NAME                e.g. test_case.py "freeing a neighbour merges both blocks"; or TEST: NAME, as --list prints
test_case.py --list [PART]       prints the names that contain PART
test_case.py --gdb NAME          runs a C++ case under gdb
    --build FOLDER               uses another build folder than build/, such as build-asan
    --no-build                   runs the programs as they are
test_case.py --self-test BUILD   proves that names are found, in a configured build folder

A case is a TEST_CASE of a Catch program, or a case of a whole-process test (tests/preload, tests/command). The latter are
generated, so each test is asked for its list, and must be built. Exit status: the case's; 2 if the name matches no case
or several.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

sys.dont_write_bytecode = True  # the source tree is only read
from paragraphs import listed_tests  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASE = re.compile(r'\b(?:TEMPLATE_|SCENARIO_)?TEST_CASE(?:_METHOD)?\s*\(\s*(?:\w+\s*,\s*)?((?:"(?:[^"\\\n]|\\.)*"\s*)+)')
TARGET = re.compile(r" -o \S*?CMakeFiles/([\w.-]+)\.dir/")


@dataclass
class Case:
    name: str
    test: str    # ctest's name of the test that runs it
    target: str  # the Catch program; "" for a whole-process test


def names_in(text):
    """The names of a source file's TEST_CASEs; adjacent string literals are joined."""
    for match in CASE.finditer(text):
        yield "".join(re.sub(r'\\(["\\])', r"\1", part) for part in re.findall(r'"((?:[^"\\]|\\.)*)"', match.group(1)))


def targets_of(build):
    """Source file -> the targets that compile it, unity builds included."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"]) / entry["file"]
        target = TARGET.search(entry["command"])
        files = re.findall(r'#include "(.+\.cc)"', file.read_text()) if "unity" in file.name and file.exists() else [file]
        for one in files:
            found.setdefault(pathlib.Path(one).resolve(), set()).add(target.group(1))
    return found


def programs_of(build):
    """Test name -> program, for each test that is a program without arguments. ctest's own list lacks unbuilt programs."""
    found = {}
    for file in build.rglob("CTestTestfile.cmake"):
        found |= dict(re.findall(r'^add_test\(\[?=*\[?([\w.-]+)\]?=*\]? "([^"]+)"\)', file.read_text(), re.M))
    return found


def catch_cases(build):
    test_of = {}
    for name, program in programs_of(build).items():
        test_of.setdefault(pathlib.Path(program).name, name)  # of several tests of one program, the first
    for file, targets in sorted(targets_of(build).items()):
        if ROOT / "tests" in file.parents and file.is_file():
            for name in names_in(file.read_text(encoding="utf-8")):
                for target in sorted(targets & set(test_of)):
                    yield Case(name, test_of[target], target)


def cases_of_script(name, test):
    listed = subprocess.run(test["command"], env=os.environ | test["environment"] | {"PRELOAD_LIST": "1"},
                            cwd=test["folder"], capture_output=True, text=True, timeout=120, check=False)
    return [Case(line, name, "") for line in listed.stdout.splitlines() if listed.returncode == 0]


def script_cases(tests):
    """The cases of the tests that use main() of harness.py."""
    asked = []
    for name, test in tests.items():
        scripts = [word for word in test["command"] if word.endswith("_test.py")]
        if scripts and "quick" in test["labels"] and re.search("^main\\(", pathlib.Path(scripts[0]).read_text(), re.M):
            asked.append((name, test))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        return [case for cases in workers.map(lambda one: cases_of_script(*one), asked) for case in cases]


def select(part, cases):
    """The cases that `part` names: an exact name wins over names that contain it."""
    exact = [case for case in cases if case.name == part]
    return exact or [case for case in cases if part in case.name]


def find(part, build):
    """Whole-process tests are asked only if no Catch case matches, because each has to be started."""
    tests = listed_tests("ctest", str(build))
    test, _, rest = part.partition(": ")
    wanted = {test: tests[test]} if test in tests else tests
    name = rest if test in tests else part
    cases = [case for case in select(name, list(catch_cases(build))) if case.test in wanted]
    if part and not cases:
        print("test_case: asking the whole-process tests for their cases", file=sys.stderr)
        cases = select(name, script_cases(wanted))
    return cases, tests


def make(build, target):
    """Configures build/ if necessary, and builds the target, or everything for a whole-process test."""
    if build == ROOT / "build" and not (build / "build.ninja").exists():
        steps = '. scripts/steps.sh && mkdir -p build && build_release "$@"'
        return subprocess.run(["bash", "-c", steps, "bash", *filter(None, [target])], cwd=ROOT, check=False).returncode
    return subprocess.run(["cmake", "--build", str(build), *(["--target", target] if target else [])], check=False).returncode


def catch_pattern(name):
    return re.sub(r"([,\[\\])", r"\\\1", name)


def run(case, test, debug):
    environment = os.environ | test["environment"]
    command = [*test["command"], catch_pattern(case.name)] if case.target else test["command"]
    if debug:
        command = ["gdb", "--args", *command]
    if not case.target:
        environment["PRELOAD_CASE"] = case.name
    print(f"test_case: {case.test}: {case.name}", file=sys.stderr, flush=True)
    return subprocess.run(command, env=environment, cwd=test["folder"], check=False).returncode


def self_test(build):
    problems = []
    sample = 'TEST_CASE("one \\"two\\"")\nTEST_CASE(\n    "three, "\n    "four", "[tag]")\nTEST_CASE_METHOD(Fixture, "five")\n'
    if list(names_in(sample)) != ['one "two"', "three, four", "five"]:
        problems.append(f"names_in: {list(names_in(sample))}")
    some = [Case("a b", "t", "x"), Case("a b c", "t", "x")]
    if [case.name for case in select("a b", some)] != ["a b"] or len(select("a", some)) != 2 or select("d", some):
        problems.append("select")
    programs, cases = programs_of(build), list(catch_cases(build))
    if not cases:
        problems.append("no case was found")
    for case in cases[:1] + [case for case in cases if "," in case.name][:1]:
        if not pathlib.Path(programs[case.test]).is_file():
            continue
        listed = subprocess.run([programs[case.test], "--list-tests", catch_pattern(case.name)],
                                capture_output=True, text=True, check=False).stdout
        if "1 matching test case" not in listed:
            problems.append(f"{case.test} does not know {case.name!r}: {listed!r}")
    print("\n".join(problems + [f"self-test: {len(cases)} cases in {len({case.test for case in cases})} programs, "
                                f"{len(problems)} wrong"]))
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--gdb", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build"), metavar="FOLDER")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--self-test", metavar="BUILD")
    asked = parser.parse_args()
    if asked.self_test:
        return self_test(pathlib.Path(asked.self_test).resolve())
    build = pathlib.Path(asked.build).resolve()
    if not (build / "compile_commands.json").exists() and (status := make(build, "help")) != 0:
        return status
    cases, tests = find(asked.name, build)
    if asked.list and cases:
        print("\n".join(f"{case.test}: {case.name}" for case in cases))
        return 0
    if not asked.name or len({case.name for case in cases}) != 1:
        several = [f"    {case.test}: {case.name}" for case in cases[:20]]
        print("\n".join([f"test_case: {len(cases)} cases match {asked.name!r}", *several]), file=sys.stderr)
        return 2
    for case in cases:  # one, or the same case in several programs
        if not asked.no_build and (status := make(build, case.target)) != 0:
            return status
        if not tests[case.test]["command"]:  # ctest lists the command only of a built program
            tests = listed_tests("ctest", str(build))
        if (status := run(case, tests[case.test], asked.gdb)) != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
