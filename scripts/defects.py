#!/usr/bin/env python3
"""Checks tests/hostile/defects.txt: defects that honest programs met, and the cases that would meet them again.

defects.py --check CTEST BUILD    runs each named case; prints `covered: N of M`; fails unless each is a case of a quick test
                                  of ctest, and was run and passed
defects.py --self-test            proves that each check can fail
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # the source tree is only read
from failures import cases_of, is_script  # noqa: E402
from paragraphs import quick_tests, read_paragraphs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFECTS = "tests/hostile/defects.txt"
PATIENCE = 200  # seconds
AT_ONCE = 4  # cases mostly wait


def read_defects(text):
    """Returns (paragraph, [(line, test, case)]) for each defect, and the problems of their form."""
    paragraphs, problems = read_paragraphs(text, DEFECTS, ("test:",))
    found, names = [], set()
    for paragraph in paragraphs:
        where, name = f"{DEFECTS}:{paragraph.line}", " ".join(paragraph.words)
        tests = [(line, *text.partition(": ")[::2]) for line, _, text in paragraph.values]
        problems += [f"{DEFECTS}:{line}: names no test case" for line, _, case in tests if not case]
        if name in names:
            problems.append(f"{where}: {name} is listed twice")
        if len(paragraph.sentence.split()) < 3:
            problems.append(f"{where}: needs a sentence")
        if not tests:
            problems.append(f"{where}: has no test")
        names.add(name)
        found.append((paragraph, tests))
    return found, problems


def as_pattern(case):
    """A case's name, such that Catch reads no pattern, list or tag in it."""
    return re.sub(r'([\\,\[\]"*])', r"\\\1", case)


def run_case(test, case):
    """Runs one case. Returns what it printed, and its exit status."""
    script = is_script(test)
    command = test["command"] + ([] if script else [as_pattern(case)])
    environment = {**os.environ, **test["environment"], **({"PRELOAD_CASE": case} if script else {})}
    try:
        done = subprocess.run(command, env=environment, cwd=test["folder"], capture_output=True, text=True, errors="replace",
                              timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as stuck:
        return f"hangs: {stuck}", 1
    return done.stdout, done.returncode


def why_uncovered(script, case, printed, status):
    """Empty: the case was run and passed."""
    lines = printed.splitlines()
    skipped = [line for line in lines if line.startswith("skipped")]
    if skipped:
        return skipped[0]
    if status != 0:
        return f"failed: {printed[-500:]!r}"
    passed = f"ok      {case}" in lines if script else re.search(r"All tests passed \(\d+ assertions? in [1-9]\d* test case", printed)
    return "" if passed else f"was not run: {printed[-200:]!r}"


def uncovered(defects, known, listed, run):
    """What is wrong with the named cases, as lines. `listed` returns a test's cases; `run` runs one and says what is wrong."""
    named = [each for _, tests in defects for each in tests]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        tests = sorted({test for _, test, _ in named if test in known})
        cases = dict(zip(tests, pool.map(lambda test: listed(known[test]), tests)))
        there = sorted({(test, case) for _, test, case in named if case in cases.get(test, ())})
        wrong = dict(zip(there, pool.map(lambda one: run(known[one[0]], one[1]), there)))

    def problem_of(test, case):
        if test not in known:
            return f"{test} is not a quick test"
        if case not in cases[test]:
            return f"{test} has no case {case!r}"
        return f"{test}: {case}: {wrong[test, case]}" if wrong[test, case] else ""

    return [f"{DEFECTS}:{line}: {problem_of(test, case)}" for line, test, case in named if problem_of(test, case)]


def check(ctest, build):
    defects, problems = read_defects((ROOT / DEFECTS).read_text(encoding="ascii"))
    problems += uncovered(defects, quick_tests(ctest, build), cases_of,
                          lambda test, case: why_uncovered(is_script(test), case, *run_case(test, case)))
    for problem in problems:
        print(problem)
    wrong = {int(problem.split(":")[1]) for problem in problems}
    covered = [paragraph for paragraph, tests in defects
               if paragraph.line not in wrong and not any(line in wrong for line, _, _ in tests)]
    print(f"covered: {len(covered)} of {len(defects)}")
    return 1 if problems or not defects else 0


def self_test():
    """Each case is a list; True: the check must refuse it. One test exists, with three cases, of which one passes."""
    good = "a word\n  what happened in words\n  test: quick.one: passes\n"
    cases = [
        (good, False),
        (good + "another\n  what happened in words\n  test: quick.one: passes\n", False),
        (good + good, True),  # the same defect twice
        ("a word\n  what happened in words\n", True),  # no test
        ("a word\n  test: quick.one: passes\n", True),  # no sentence
        (good + "  test: quick.one\n", True),  # no case
        (good + "  test: quick.two: passes\n", True),  # a test that does not exist
        (good + "  test: quick.one: passed\n", True),  # a case that does not exist
        (good + "  test: quick.one: skips\n", True),
        (good + "  test: quick.one: fails\n", True),
    ]
    answers = {"passes": "", "skips": "skipped: no", "fails": "failed"}
    wrong = []
    for text, refused in cases:
        defects, problems = read_defects(text)
        problems += uncovered(defects, {"quick.one": None}, lambda _: set(answers), lambda _, case: answers[case])
        if bool(problems) != refused:
            wrong.append(f"self-test: {text!r} was {'accepted' if refused else f'refused: {problems}'}")
    catch, none = "All tests passed (1 assertion in 1 test case)\n", "No test cases matched 'a, b'\nNo tests ran\n"
    results = [((True, "a", "ok      a\ncovered: 1 of 1\n", 0), False), ((True, "a", "covered: 0 of 0\n", 1), True),
               ((True, "a", "ok      a b\ncovered: 1 of 1\n", 0), True), ((True, "a", "skipped: no\nok      a\n", 0), True),
               ((True, "a", "FAILED  a: b\n", 1), True), ((False, "a", catch, 0), False), ((False, "a", none, 0), True),
               ((False, "a", "skipped: not root\n" + catch, 0), True), ((False, "a", catch, 1), True)]
    wrong += [f"self-test: {result!r} was {'accepted' if refused else 'refused'}" for result, refused in results
              if bool(why_uncovered(*result)) != refused]
    print("\n".join(wrong + [f"self-test: {len(cases) + len(results)} lists and results, {len(wrong)} wrong"]))
    return 1 if wrong else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--check":
        return check(*arguments[1:])
    if arguments == ["--self-test"]:
        return self_test()
    print(__doc__)
    return 2


sys.exit(main())
