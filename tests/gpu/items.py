"""What an item is made of: tests, each a function that returns an Outcome. Tests of one lane follow each other; lanes
run at the same time; tests without a lane run alone, before the lanes."""
import collections
import json
import threading
from dataclasses import dataclass, field

import runs
import tree as trees

SECONDS = 45  # that a program may take, unless a test says otherwise


class Skip(Exception):
    pass


@dataclass
class Outcome:
    status: str
    figures: dict = field(default_factory=dict)
    note: str = ""


@dataclass
class Test:
    name: str
    body: object  # called without arguments; returns an Outcome, or raises
    lane: str = ""


@dataclass
class Check:
    """One run of the check, as the items see it."""
    tree: trees.Tree
    results: object
    clock: runs.Clock
    full: bool = False
    raw: object = None  # a folder for the whole output of each run, or None

    def run(self, name, command, seconds=SECONDS, folder=None, **settings):
        ended = runs.run(command, self.tree.environment(**settings), self.clock.at_most(seconds), folder)
        if self.raw:
            text = f"{' '.join(map(str, command))}\n{settings}\n{ended.why()}\n--- stdout\n{ended.out}\n--- stderr\n{ended.err}"
            (self.raw / f"{name.replace('/', '_')}.txt").write_text(text, encoding="utf-8")
        return ended

    def run_variant(self, name, variant, command, limit=None, seconds=SECONDS, **settings):
        """(how it ended, figures of the run). A log is read and checked, then removed."""
        log = self.tree.scratch / f"{name}.jsonl" if variant == "logged" else None
        line, more = self.tree.under(variant, command, limit, trees.SUMMARY, log)
        ended = self.run(name, line, seconds, **(more | settings))
        figures = {"seconds": round(ended.seconds, 2)} | trees.summary_figures(ended.err)
        if log and log.exists():
            figures["log"] = read_log(log)
            log.unlink()
        return ended, figures


def read_log(path):
    """What the last record of a log says; the records are checked."""
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as broken:
        return {"problem": f"not JSON: {broken}"}
    if not records:
        return {"problem": "empty"}
    end = {key: value for key, value in records[-1].items() if key not in ("t", "ts", "seq")}
    problems = [] if records[0]["t"] == "meta" else ["does not begin with meta"]
    if records[-1]["t"] != "end":
        problems.append("does not finish with end")
        end = {}
    if [record["seq"] for record in records[1:]] != list(range(1, len(records))):
        problems.append("seq is not consecutive")
    return {"records": len(records)} | end | ({"problem": "; ".join(problems)} if problems else {})


def judged(figures, **conditions):
    """Failed, with the names of the conditions that do not hold."""
    broken = ", ".join(name.replace("_", " ") for name, holds in conditions.items() if not holds)
    return Outcome("failed" if broken else "ok", figures, f"does not hold: {broken}" if broken else "")


class References:
    """Native runs, each made once, by the first test that compares with it; others wait for it. Threads: any."""

    def __init__(self):
        self._ended = {}
        self._locks = collections.defaultdict(threading.Lock)

    def get(self, name, make):
        with self._locks[name]:
            if name not in self._ended:
                self._ended[name] = make()
            return self._ended[name]


def compared(native, ended, figures, lines_of):
    """Whether a run ended and printed as natively; lines_of selects the lines that must agree."""
    wanted, seen = lines_of(native.out), lines_of(ended.out)
    if native.status != 0:
        same = "its native run failed" if ended.status == 0 else "its native run failed, too"
        return Outcome("failed" if ended.status else "ok", figures | (ended.tail() if ended.status else {}), same)
    if ended.status != 0:
        return Outcome("failed", figures | ended.tail(), ended.why())
    if wanted != seen:
        differing = [f"natively {one!r}, here {other!r}" for one, other in zip(wanted, seen) if one != other]
        return Outcome("failed", figures | {"native": wanted[:20], "here": seen[:20]},
                       differing[0] if differing else f"{len(wanted)} lines natively, {len(seen)} here")
    if figures.get("log", {}).get("problem"):
        return Outcome("failed", figures, f"log: {figures['log']['problem']}")
    return Outcome("ok", figures | {"lines": len(seen)})
