"""The item `conformance`: the simulator's own suite (tests/simcuda/conformance) against the driver of this machine.

Each case runs in a process of its own, so that one that spoils its context spoils no other; several at a time, but
those that are marked as such alone. One that fails beside others runs again alone. A failed case is a difference
between driver and simulator: a bug of the simulator, unless differences.txt says that it cannot be compared.
"""
import concurrent.futures
import html
import os
import re
import time

import differences
import items
import runs
import tree as trees

PROGRAM = "tests/simcuda/conformance/simcuda_conformance"
ALONE = "[alone]"  # the tag of cases that compare the device's free memory, or take most of it
AT_A_TIME, CASE_SECONDS = 12, 20
SECONDS, SECONDS_ALONE, TIMES_LONGER_IF_FULL = 40, 20, 4  # beside each other, then alone
STRIDE = 7  # so that a run that is cut short has cases of every file
EACH_OVER_SIM = 6  # every so many cases, where the suite itself is only there to test this file

EXPRESSION = re.compile(r'((?:<Info>[^<]*</Info>\s*)*)<Expression success="false" type="(\w+)" filename="([^"]*)" line="(\d+)">'
                        r"\s*<Original>(.*?)</Original>\s*<Expanded>(.*?)</Expanded>", re.S)
INFO = re.compile("<Info>([^<]*)</Info>")
OTHER = re.compile(r'<(Exception|FatalErrorCondition|Failure)\b(?: filename="([^"]*)" line="(\d+)")?[^>]*>(.*?)</\1>', re.S)
TOTALS = re.compile(r'<OverallResults successes="(\d+)" failures="(\d+)"')


def settings(check):
    catalogue = {"SIMCUDA_CATALOGUE": trees.SOURCE / "shim/cuda_memory_api.json",
                 "SIMCUDA_INTEROP": trees.SOURCE / "shim/interop_exports.txt"}
    return catalogue | ({"SIMCUDA_DEVICES": "2x8GiB", "SIMCUDA_MACHINE": ""} if check.tree.sim else {})


def list_cases(check, *tags):
    ended = check.run("conformance.list", [check.tree.path(PROGRAM), *tags, "--list-test-names-only"], 20, **settings(check))
    names = [line.strip() for line in ended.out.splitlines() if line.strip()]
    if not names:
        raise RuntimeError(f"the suite lists no case: {ended.why()}")
    return names


def run_case(check, name):
    chosen = re.sub(r'([\\,\[\]*"])', r"\\\1", name)
    command = [check.tree.path(PROGRAM), chosen, "-r", "xml"]
    return runs.run(command, check.tree.environment(**settings(check)), check.clock.at_most(CASE_SECONDS))


def failed_assertions(ended):
    """A line for each failed assertion, and for a crash; empty if the case held."""
    plain = html.unescape
    lines = [f"{os.path.basename(file)}:{line} {kind}( {plain(text).strip()} ) with {plain(values).strip()}"
             + "".join(f"; {plain(message).strip()}" for message in INFO.findall(messages))
             for messages, kind, file, line, text, values in EXPRESSION.findall(ended.out)]
    lines += [f"{os.path.basename(file)}:{line} {kind}: {plain(text).strip()}" for kind, file, line, text in OTHER.findall(ended.out)]
    if ended.status is None or ended.status < 0 or (ended.status != 0 and not lines):
        lines.append(ended.why())
    return lines if ended.status != 0 else []


class Suite:
    def __init__(self, check):
        self.check, self.seen = check, {}

    def run(self, names, at_a_time, seconds):
        """Runs cases until the time is up; returns those that were not reached."""
        end = time.monotonic() + seconds

        def one(name):
            if time.monotonic() > end or self.check.clock.left() < 3:
                return name
            self.seen[name] = run_case(self.check, name)
            return None
        with concurrent.futures.ThreadPoolExecutor(at_a_time) as workers:
            return [name for name in workers.map(one, names) if name]

    def failed(self):
        return [name for name, ended in self.seen.items() if ended.status != 0]


def report(check):
    if not check.tree.has(PROGRAM):
        raise items.Skip(f"{PROGRAM} is not built")
    begun = time.monotonic()
    names, suite = list_cases(check), Suite(check)
    left_out = {} if check.tree.sim else differences.incomparable()
    for name in names:
        if name in left_out:
            check.results.add(f"conformance: {name}", "skipped", None, left_out[name])
    longer = TIMES_LONGER_IF_FULL if check.full else 1
    ordered = [name for first in range(STRIDE) for name in names[first::STRIDE] if name not in left_out]
    chosen = ordered[::EACH_OVER_SIM] if check.tree.sim and not check.full else ordered
    marked = list_cases(check, ALONE)
    alone = [name for name in chosen if name in marked]
    missed = suite.run(alone, 1, SECONDS)
    at_a_time = min(os.cpu_count() or 1, AT_A_TIME)
    missed += suite.run([name for name in chosen if name not in alone], at_a_time, SECONDS * longer)
    beside = [name for name in suite.failed() if name not in alone]
    again = [name for name in beside if suite.seen[name].status is not None]  # one that hung would hang again
    before = dict(suite.seen)
    not_again = set(suite.run(again, 1, SECONDS_ALONE * longer))
    for name in suite.failed():
        ended = suite.seen[name]
        figures = {"assertions": failed_assertions(ended)[:8], "status": ended.status, "stderr": ended.err.splitlines()[-4:]}
        if check.raw:
            (check.raw / f"conformance.{re.sub(r'[^A-Za-z0-9]+', '_', name)[:120]}.xml").write_text(ended.out, encoding="utf-8")
        note = "seen only beside other cases" if name in not_again else ""
        check.results.add(f"conformance: {name}", "failed", figures, note)
    failed = len(suite.failed())
    totals = [TOTALS.search(ended.out) for ended in suite.seen.values()]
    figures = {"cases": len(names), "run": len(suite.seen), "held": len(suite.seen) - failed,
               "without_assertions": sum(bool(found) and found.groups() == ("0", "0") for found in totals),
               "held_only_alone": [name for name in beside if suite.seen[name].status == 0],
               "hung": [name for name, ended in before.items() if ended.status is None], "not_reached": missed,
               "seconds": round(time.monotonic() - begun, 1)}
    if check.tree.sim:
        figures["chosen"] = len(chosen)
    note = f"{failed} differences" if failed else f"{len(missed)} cases not reached" if missed else ""
    return items.Outcome("failed" if failed else "skipped" if missed else "ok", figures, note)


def tests(check, _):
    return [items.Test("conformance", lambda: report(check))]
