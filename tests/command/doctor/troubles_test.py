#!/usr/bin/env python3
"""Plants what `ration doctor` can find, one by one, and expects its ID, its words, its remedy and the exit status.

Every row of findings.inc that is a note or a trouble has a case here, in one of the three files of cases.
"""
import functools

import installation_cases
import machine_cases
import process_cases
from planting import NotHere, table
from harness import Failure, main

CASES = installation_cases.CASES | machine_cases.CASES | process_cases.CASES
MISSED = []
WANTED = [name for name, (severity, _) in table().items() if severity != "ok"]


def planted(case, name, folder):
    try:
        case(folder)
    except NotHere as why:
        MISSED.append(name)
        print(f"not permitted here, so not planted: {name} needs {why}")


def without_case(_):
    raise Failure("no case plants it")


def unlisted(_):
    raise Failure("it is not in findings.inc")


try:
    main({name: functools.partial(planted, CASES[name], name) if name in CASES else without_case for name in WANTED}
         | {name: unlisted for name in CASES if name not in WANTED})
finally:
    if MISSED:
        print(f"of these only on other machines: {len(MISSED)}: {', '.join(MISSED)}")
