#!/usr/bin/env python3
"""Checks shim/coverage.txt, which says what Ration does about each memory-related driver function.

coverage.py --check CTEST BUILD   prints `covered: N of M` and `gaps: K`; fails if the list is wrong or incomplete
coverage.py --rows FILE           writes the rows of `ration doctor --coverage` as C++
coverage.py --self-test           proves that each check can fail
"""
import json
import pathlib
import sys

from coverage_list import STATEMENTS, coverage, read_statements, read_tree
from paragraphs import quick_tests


def unknown_tests(rows, known):
    return [f"{STATEMENTS}:{row.statement.line}: {row.export} names the test {test}, which is not a quick test"
            for row in rows for test in row.statement.tests if test not in known]


def check(ctest, build):
    rows, asked, problems = read_tree()
    problems += unknown_tests(rows, quick_tests(ctest, build))
    asked_rows = [row for row in rows if row.asked]
    gaps = [row for row in asked_rows if not row.covered]
    for row in gaps:
        print(f"gap: {row.export}: {row.statement.sentence}")
    for problem in problems:
        print(problem)
    print(f"covered: {len(asked_rows) - len(gaps)} of {asked}")
    print(f"gaps: {len(gaps)}")
    return 1 if problems or not rows else 0


def write_rows(path):
    """Writes one initialiser of cli::CoverageRow a line. Problems are left to --check: they must not fail the build."""
    rows, _, _ = read_tree()
    lines = [f'{{"{row.export}", {row.since}, "{row.action}", {"true" if row.asked else "false"}, '
             f'Standing::k{row.statement.standing.capitalize()}, "{row.family}", {json.dumps(row.statement.sentence)}, '
             f'"{" ".join(row.statement.tests)}"}},\n' for row in rows]
    pathlib.Path(path).write_text("".join(lines), encoding="ascii")
    return 0 if rows else 1


def self_test():
    """Each case is a list over four exports, of which one is hooked; True: the check must refuse it."""
    catalogue = {symbol: {"base": base, "action": action, "cuda_version": 2000} for symbol, base, action in
                 [("cuTake_v2", "cuTake", "POOL"), ("cuMake", "cuMake", "COUNT"), ("cuMake_ptsz", "cuMake", "COUNT"),
                  ("cuAsk", "cuAsk", "PASS")]}
    hooks = {"cuTake_v2": ("device", 3020)}
    take, make = "hooked cuTake_v2\n  is met here\n  tests: preload.take\n", "gap cuMake*\n  is not met yet\n"
    cases = [
        (take + make, False),
        (take + "passed cuMake\n  + cuMake_ptsz\n  takes nothing at all\n", False),
        (take, True),  # no statement about cuMake
        (take + "gap cuMake\n  is not met yet\n", True),  # none about its other stream flavour
        (make, True),  # none about a hook
        (take + make + "gap cuMake\n  is not met yet\n", True),
        (make + "passed cuTake_v2\n  takes nothing at all\n", True),  # a hooked function marked passed
        (make + "gap cuTake_v2\n  is not met yet\n", True),  # a hooked function marked gap
        (take + "hooked cuMake*\n  is met here\n  tests: preload.take\n", True),  # a hook that does not exist
        (make + "hooked cuTake_v2\n  is met here\n", True),  # a hook without a test
        (make + "hooked cuTake_v2\n  is met here\n  tests: preload.other\n", True),  # a test that does not exist
        (make + "hooked cuTake_v2\n  is met here\n  tests: unit.take\n", True),  # a test that does not reach the hook
        (take + "gap cuMake*\n", True),  # a gap without a sentence
        (take + make + "passed cuNone\n  takes nothing at all\n", True),
        (take + make + "passed cuAsk\n  takes nothing at all\n", True),
        (take + make + "later cuAsk\n  takes nothing at all\n", True),
        ("  takes nothing at all\n" + take + make, True),
    ]
    wrong = []
    for text, refused in cases:
        statements, problems = read_statements(text)
        rows, more = coverage(catalogue, hooks, statements)
        if bool(problems + more + unknown_tests(rows, {"preload.take", "unit.take"})) != refused:
            wrong.append(f"self-test: {text!r} was {'accepted' if refused else f'refused: {problems + more}'}")
    print("\n".join(wrong + [f"self-test: {len(cases)} lists, {len(wrong)} wrong"]))
    return 1 if wrong else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--check":
        return check(*arguments[1:])
    if len(arguments) == 2 and arguments[0] == "--rows":
        return write_rows(arguments[1])
    if arguments == ["--self-test"]:
        return self_test()
    print(__doc__)
    return 2


sys.exit(main())
