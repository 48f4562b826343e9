#!/usr/bin/env python3
"""Checks tests/failures.txt: failures of other memory limiters, and the tests that show that Ration has none of them.

failures.py --check CTEST BUILD   prints `covered: N of M`; fails unless each named test is a quick test of ctest and lists
                                  the named case itself
failures.py --self-test           proves that each check can fail
"""
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree is only read
from paragraphs import quick_tests, read_paragraphs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAILURES = "tests/failures.txt"
# A GitHub thread, or lines of a commit: owner/repo#12, owner/repo@1a2b3c4:file.c:12-34
REFERENCE = re.compile(r"[\w.-]+/[\w.-]+(#\d+|@[0-9a-f]{7,40}:[\w./-]+:\d+(-\d+)?)")
ASKED = (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"])  # Catch2 version 2, version 3


def read_failures(text):
    """Returns (paragraph, [(line, test, case)], reasons) for each failure, and the problems of their form."""
    paragraphs, problems = read_paragraphs(text, FAILURES, ("test:", "-"))
    found = []
    for paragraph in paragraphs:
        where = f"{FAILURES}:{paragraph.line}"
        tests = [(line, *text.partition(": ")[::2]) for line, key, text in paragraph.values if key == "test:"]
        reasons = [text for _, key, text in paragraph.values if key == "-"]
        problems += [f"{where}: {word} is not a reference" for word in paragraph.words if not REFERENCE.fullmatch(word)]
        problems += [f"{FAILURES}:{line}: names no test case" for line, _, case in tests if not case]
        if len(paragraph.sentence.split()) < 3:
            problems.append(f"{where}: needs a sentence")
        if any(len(reason.split()) < 3 for reason in reasons):
            problems.append(f"{where}: needs a reason")
        if not tests and not reasons:
            problems.append(f"{where}: has neither a test nor a reason why none is possible")
        found.append((paragraph, tests, reasons))
    return found, problems


def ask(command, settings, folder):
    environment = {**os.environ, **settings, "PRELOAD_LIST": "1"}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def is_script(test):
    return any(word.endswith("_test.py") for word in test["command"])


def cases_of(test):
    """The cases that the test itself lists, by harness.py or by Catch2. Empty if it is not built."""
    if not test["command"]:
        return set()
    if is_script(test):
        return set(ask(test["command"], test["environment"], test["folder"]))
    for flags in ASKED:
        listed = ask(test["command"] + flags, test["environment"], test["folder"])
        if len(listed) > 1:  # otherwise the flag is the other version's
            return set(listed)
    return set()


def untrue(failures, known, listed):
    """The named tests and cases that do not exist. `listed` returns a test's cases."""
    problems, seen = [], {}
    for _, tests, _ in failures:
        for line, test, case in tests:
            if test not in known:
                problems.append(f"{FAILURES}:{line}: {test} is not a quick test")
                continue
            if test not in seen:
                seen[test] = listed(known[test])
            if case not in seen[test]:
                problems.append(f"{FAILURES}:{line}: {test} has no case {case!r}")
    return problems


def check(ctest, build):
    failures, problems = read_failures((ROOT / FAILURES).read_text(encoding="ascii"))
    problems += untrue(failures, quick_tests(ctest, build), cases_of)
    for problem in problems:
        print(problem)
    shown = sum(1 for _, tests, _ in failures if tests)
    print(f"failures: {shown} shown by {sum(len(tests) for _, tests, _ in failures)} cases, {len(failures) - shown} not possible here")
    wrong = {problem.split(":")[1] for problem in problems}
    print(f"covered: {max(len(failures) - len(wrong), 0)} of {len(failures)}")
    return 1 if problems or not failures else 0


def self_test():
    """Each case is a list; True: the check must refuse it. One test exists, with two cases."""
    head = "a/b#1 a/b@0123abc:c.c:4\n  a sentence of words\n"
    cases = [
        (head + "  test: quick.one: the first case\n", False),
        (head + "  + a/c#2\n  test: quick.one: the first case\n  test: quick.one: another: case\n", False),
        (head + "  - because of this reason\n", False),
        (head, True),  # neither test nor reason
        (head + "  - because\n", True),
        (head + "  test: quick.two: the first case\n", True),  # a test that does not exist
        (head + "  test: quick.one: the last case\n", True),  # a case that does not exist
        (head + "  test: quick.one: the first\n", True),  # part of a name
        (head + "  test: quick.one\n", True),  # no case
        ("a/b#1\n  test: quick.one: the first case\n", True),  # no sentence
        ("a/b#x\n  a sentence of words\n  test: quick.one: the first case\n", True),
        ("a b#1\n  a sentence of words\n  test: quick.one: the first case\n", True),
        ("  a sentence of words\n" + head + "  - because of this reason\n", True),
    ]
    wrong = []
    for text, refused in cases:
        failures, problems = read_failures(text)
        problems += untrue(failures, {"quick.one": None}, lambda _: {"the first case", "another: case"})
        if bool(problems) != refused:
            wrong.append(f"self-test: {text!r} was {'accepted' if refused else f'refused: {problems}'}")
    print("\n".join(wrong + [f"self-test: {len(cases)} lists, {len(wrong)} wrong"]))
    return 1 if wrong else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--check":
        return check(*arguments[1:])
    if arguments == ["--self-test"]:
        return self_test()
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
