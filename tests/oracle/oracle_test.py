#!/usr/bin/env python3
"""Never worse than the driver on a device of that size: random programs, natively and under Ration.

oracle_test.py COUNT [SEED [FIRST]]   plays COUNT random programs; the seed is printed
       … --family failing             of calls that fail
oracle_test.py --replay FILE...       plays the programs of files; --show: prints the answers, too
oracle_test.py --self-test            proves that each kind of difference is found (self_test.py)
"""
import collections
import os
import pathlib
import random
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from difference import destroys_its_own, differences, read_list
from minimise import confirmed, minimise
from programs import PATIENT_MS, QUICK_MS, Failure, generate, parse, play_natively, play_under
from self_test import self_test

HERE = pathlib.Path(__file__).resolve().parent
LISTS = [HERE / "allowed.txt", HERE / "known.txt"]
BATCH, WORKERS = 100, 2
MOST_REPORTED = 12
MOST_OTHERS = 20
TRIES = 5
LONG = 20_000  # programs


class Judge:
    def __init__(self):
        self.lines = [line for path in LISTS if path.exists() for line in read_list(path)]
        self.played = collections.Counter()
        self.unsteady = self.own_fault = 0
        self.found = {}  # signature and settings -> a confirmed difference
        self.seen = collections.Counter()
        self.others = collections.defaultdict(list)  # programs of a kind that was found already, which may hide another

    def listed(self, difference):
        line = next((line for line in self.lines if line.matches(difference)), None)
        if line is not None:
            line.matched += 1
        return line is not None

    def first_unlisted(self, found):
        return next((difference for difference in found if not self.listed(difference)), None)

    def judge(self, program, native, under):
        self.played[program.settings.get("RATION_MODE", "pool")] += 1
        self.own_fault += destroys_its_own(native)
        difference = self.first_unlisted(differences(program, native, under))
        if difference is None:
            return
        key = (*difference.signature(), difference.where["mode"])
        self.seen[key] += 1
        if key in self.found or len(self.found) >= 4 * MOST_REPORTED:
            self.others[key].append(program.name)
            return
        again = self.again(program, difference)
        if again is None:
            self.unsteady += 1
        else:
            self.found.setdefault((*again.signature(), again.where["mode"]), again)
            print(f"found: program {program.name}: {again}\n{again.program.text()}", flush=True)

    def again(self, program, difference):
        """What a patient run shows. Threads side by side get several; wrong bytes and too much memory count at once."""
        for _ in range(TRIES if difference.where.get("together") else 1):
            again = self.first_unlisted(confirmed(program))
            if again is not None:
                return again
        return difference if difference.verb in ("end", "held") or difference.under.endswith("!") else None

    def say_how_far(self):
        count = sum(self.played.values())
        if count % 10_000 == 0:
            print(f"{count} programs, {len(self.found)} kinds of differences", flush=True)

    def report(self, long):
        for key, difference in list(self.found.items())[:MOST_REPORTED]:
            smallest = minimise(difference.program, difference.signature(), self.listed)
            again = next((each for each in confirmed(smallest) if each.signature() == difference.signature()), difference)
            others = self.others[key][:MOST_OTHERS]
            print(f"DIFFERENCE ({self.seen[key]} times): {again}\n{again.program.text()}", flush=True)
            print(f"most likely of the same kind: programs {', '.join(others)}" if others else "no other program", flush=True)
        for key, difference in list(self.found.items())[MOST_REPORTED:]:
            print(f"DIFFERENCE ({self.seen[key]} times), program {difference.program.name}: {difference}")
        for line in self.lines if long else ():
            print(f"{line.matched or 'UNUSED: 0'} matched: {line.text}")
        listed = sum(line.matched for line in self.lines)
        print(f"{sum(self.played.values())} programs ({dict(self.played)}), {len(self.found)} kinds of differences, "
              f"{listed} listed, {self.unsteady} that a patient run did not show, "
              f"{self.own_fault} programs that destroy their own data")
        if self.own_fault > sum(self.played.values()) / 100:
            raise Failure("too many programs destroy their own data natively")


def play_batch(seed, first, count, family):
    programs = generate(seed, first, count, family)
    native = play_natively(programs)
    return list(zip(programs, native, play_under(programs, native, QUICK_MS)))


def play_random(count, seed, first, family):
    print(f"random programs: oracle_test.py {count} {seed} {first} --family {family}", flush=True)
    judge, began = Judge(), time.monotonic()
    starts = range(first, first + count, BATCH)
    with ThreadPoolExecutor(WORKERS) as workers:
        for played in workers.map(lambda start: play_batch(seed, start, min(BATCH, first + count - start), family), starts):
            for program, native, under in played:
                judge.judge(program, native, under)
            judge.say_how_far()
    seconds = time.monotonic() - began
    judge.report(count >= LONG and family == "mixed")
    print(f"{count / seconds:.0f} programs a second")
    return not judge.found


def replay(paths, show):
    """Each program as its file has it. True: no difference that is on no list."""
    judge, good = Judge(), True
    for path in paths:
        programs = parse(pathlib.Path(path).read_text())
        native = play_natively(programs)
        for program, answers, under in zip(programs, native, play_under(programs, native, PATIENT_MS)):
            difference = judge.first_unlisted(differences(program, answers, under))
            if show:
                for step, before, after in zip(program.steps + ["end"], answers, under):
                    print(f"  {step:44} {before:24} {after}")
            print(f"{'ok     ' if difference is None else 'FAILED '} {pathlib.Path(path).name}: {difference or program.name}")
            good = good and difference is None
    return good


def seed_of_run(default):
    given = re.search(r"seed=(\d+)", os.environ.get("RC_PARAMS", ""))
    return int(given[1]) if given else default


def main(arguments):
    if arguments[0] == "--self-test":
        return self_test()
    if arguments[0] == "--replay":
        files = [argument for argument in arguments[1:] if argument != "--show"]
        return replay(files, "--show" in arguments)
    family = "mixed"
    if "--family" in arguments:
        family = arguments[arguments.index("--family") + 1]
        arguments = arguments[:arguments.index("--family")]
    count = int(arguments[0])
    if len(arguments) > 1:
        return play_random(count, int(arguments[1]), int(arguments[2]) if len(arguments) > 2 else 0, family)
    if count < LONG:  # what decides about a change plays the same programs for each
        return play_random(count, 1, 0, family)
    other = seed_of_run(random.SystemRandom().randrange(1 << 30))
    return all([play_random(count // 2, 1, 0, family), play_random(count - count // 2, other, 0, family)])


if __name__ == "__main__":
    try:
        sys.exit(0 if main(sys.argv[1:]) else 1)
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")
