#!/usr/bin/env python3
"""Prints the figures of one run of the benchmarks as a table: table.py [--strict] FOLDER

Reads bench_*.json and replay_*.json of FOLDER, prints one row a figure and writes table.json there. A row: the figure, its
yardstick of the same run, their ratio, the bound of either, and `ok` or `over`. Rows of threads are `disturbed` where other
processes kept the processors busy, and `n/a` where there is only one processor.
Exit: 0; 1 with --strict where a bound is exceeded; 2 where a figure is missing.
"""
import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import sys
from typing import Callable, Optional

Figures = dict[str, float]


@dataclasses.dataclass(frozen=True)
class Row:
    text: str
    value: Callable[[Figures], float]
    unit: str = "ns"
    yardstick: Optional[tuple[str, Callable[[Figures], float]]] = None
    ratio_at_most: Optional[float] = None
    at_most: Optional[float] = None
    applies: Callable[[Figures], bool] = lambda figures: True
    disturbed: Callable[[Figures], bool] = lambda figures: False  # then `over` would prove nothing


def of(name):
    return lambda figures: figures[name]


MUTEX = ("mutex pair", of("alone.mutex"))
AT_1000 = ("at 1,000", of("alone.replace_1000"))
ONE_THREAD = ("one thread", of("threads.threads_1"))
TWO_THREADS = ("two threads", lambda figures: figures["threads.threads_2"] / 2)


def called(kind):
    return lambda figures: figures[f"pool.{kind}_calls_through"] * figures["pool.get_current_through"]


def added(kind):
    return lambda figures: figures[f"pool.{kind}_through"] - called(kind)(figures) - figures[f"pool.{kind}_alone"]


def through(kind, text):
    alone = ("pool alone", of(f"pool.{kind}_alone"))
    return [
        Row(f"{text}: pool alone", of(f"pool.{kind}_alone"), yardstick=MUTEX),
        Row(f"{text}: pool alone, retired and reclaimed later", of(f"pool.{kind}_quarantined"), yardstick=alone),
        Row(f"{text}: through the library", of(f"pool.{kind}_through"), yardstick=alone),
        Row(f"{text}: over granules", of(f"pool.{kind}_through"), yardstick=("over slabs", of(f"pool.{kind}_slabs")), ratio_at_most=1.03),
        Row(f"{text}: the driver's cuCtxGetCurrent in it", called(kind)),
        Row(f"{text}: library - driver - pool alone", added(kind), at_most=80),
    ]


def packaged(figures):
    """Rows that only a run with --packaged has."""
    kinds = (("lifo_1000", "last in, first out"), ("replace_1000", "replacement in turn"))
    return [Row(f"{text}: the package's library", of(f"pool.{kind}_packaged"),
                yardstick=("this build's", of(f"pool.{kind}_through")), ratio_at_most=1.05)
            for kind, text in kinds if f"pool.{kind}_packaged" in figures]


def has_two(figures):
    return figures["threads.processors"] >= 2


def crowded(figures):
    return figures["threads.others"] > 5


def malloc(live, text):
    return Row(f"malloc and free, {text} live, sizes / 1024", of(f"alone.malloc_{live}"), yardstick=MUTEX)


SECTIONS = {
    "Yardsticks": [
        Row("std::mutex, lock and unlock", of("alone.mutex")),
        Row("std::map, a look-up in 1,000 entries", of("alone.map_1000"), yardstick=MUTEX),
        malloc(1000, "1,000"),
        malloc(10000, "10,000"),
        malloc(100000, "100,000"),
    ],
    "Log": [
        Row("a record: half of what a log adds to a pair",
            lambda figures: (figures["log.pair_logged"] - figures["log.pair"]) / 2,
            yardstick=("one write", of("log.write")), ratio_at_most=2),
        Row("a stack of 16 calls that was seen before",
            lambda figures: figures["log.pair_stacks"] - figures["log.pair_logged"],
            yardstick=("one write", of("log.write")), ratio_at_most=1),
        Row("a stack of 16 calls, one of a thousand",
            lambda figures: figures["log.pair_paths"] - figures["log.pair_logged"],
            yardstick=("one write", of("log.write"))),
    ],
    "Pool alone: allocate and free, with lock and look-up": [
        Row("random replacement, 1,000 live", of("alone.replace_1000"), yardstick=MUTEX, ratio_at_most=6),
        Row("last in, first out, 1,000 live", of("alone.lifo_1000"), yardstick=MUTEX, ratio_at_most=6),
        Row("random replacement, 10,000 live", of("alone.replace_10000"), yardstick=AT_1000, ratio_at_most=1.5),
        Row("random replacement, 100,000 live", of("alone.replace_100000"), yardstick=AT_1000, ratio_at_most=4),
        Row("99th percentile of an allocate, 1,000 live", of("alone.p99_allocate_1000"), at_most=500),
        Row("99th percentile of a free, 1,000 live", of("alone.p99_free_1000"), at_most=500),
        Row("metadata per block, 1,000 live", of("alone.metadata_1000"), "bytes", at_most=64),
        Row("metadata per block, 10,000 live", of("alone.metadata_10000"), "bytes", at_most=64),
        Row("metadata per block, 100,000 live", of("alone.metadata_100000"), "bytes", at_most=64),
    ],
    "Threads on one pool, 1,000 live in all": [
        Row("processor time used by other processes", of("threads.others"), "%"),
        Row("one thread, a pair", of("threads.threads_1"), yardstick=MUTEX),
        Row("two threads, a pair of one thread", of("threads.threads_2"), yardstick=ONE_THREAD, ratio_at_most=2.5,
            applies=has_two, disturbed=crowded),
        Row("four threads, time per pair of all", lambda figures: figures["threads.threads_4"] / 4,
            yardstick=TWO_THREADS, ratio_at_most=2, applies=has_two, disturbed=crowded),
        Row("eight threads, time per pair of all", lambda figures: figures["threads.threads_8"] / 8,
            yardstick=TWO_THREADS, ratio_at_most=2, applies=has_two, disturbed=crowded),
    ],
    "A reservation and its release": [
        Row("without a group", of("ledger.registered_0"), yardstick=("mutex pair", of("ledger.mutex"))),
        Row("in a group of one process", of("ledger.registered_1"), yardstick=("mutex pair", of("ledger.mutex"))),
        Row("in a group of 1,024 processes", of("ledger.registered_1024"),
            yardstick=("one process", of("ledger.registered_1")), ratio_at_most=1.2),
    ],
    "Through the preloaded library, mode pool, 1,000 live": [
        Row("the driver's cuCtxGetCurrent, one call", of("pool.get_current_through"), yardstick=MUTEX),
        *through("lifo_1000", "last in, first out"),
        *through("replace_1000", "replacement in turn"),
    ],
}

# Bounds of the ratio of a pair with and without Ration.
PAIR_RATIO_AT_MOST = {"dlsym.foreign_name": 1.5, "dlsym.foreign_name_found": 1.5}

# Bounds of smallest arena over peak, by the trace's name. The second holds for other seeds of the shape (`train-7`).
ARENA_AT_MOST = {"train": (1.0075, 1.0085), "serve": (1.025, 1.025), "steady1k": (1.135, 1.15), "steady10k": (1.095, 1.10)}


def read_figures(folder):
    """Every figure as FILE.NAME, and the rows that SECTIONS does not list: pairs with and without Ration, parts, traces."""
    figures, pairs, parts, arenas = {}, [], [], []
    for path in sorted(folder.glob("bench_*.json")):
        read = json.loads(path.read_text())
        if "benchmarks" in read:
            times = {entry["name"]: entry["real_time"] for entry in read["benchmarks"]}
            mutex = times.pop("yardstick_mutex")
            parts += [Row(name, lambda _, v=v: v, yardstick=("mutex pair", lambda _, m=mutex: m)) for name, v in times.items()]
            continue
        for figure in read["figures"]:
            name = f"{read['bench']}.{figure['name']}"
            if "value" in figure:
                figures[name] = figure["value"]
            else:
                pairs.append(Row(name, lambda _, v=figure["with"]: v, figure["unit"],
                                 ("without", lambda _, w=figure["without"]: w), PAIR_RATIO_AT_MOST.get(name)))
    for path in sorted(folder.glob("replay_*.json")):
        name = path.stem.removeprefix("replay_")
        ratio = json.loads(path.read_text())["min_arena_ratio"]
        arenas.append(Row(name, lambda _, r=ratio: r, "", at_most=arena_at_most(name)))
    return figures, {"Core, step by step": parts, "With and without Ration": pairs, "Smallest arena / peak": arenas}


def arena_at_most(name):
    shape = re.split(r"[-_.]", name)[0]
    given, other_seeds = ARENA_AT_MOST.get(shape, (None, None))
    return given if name == shape else other_seeds


def judge(row, figures):
    value = row.value(figures)
    result = {"figure": row.text, "value": value, "unit": row.unit, "beside": None, "ratio": None,
              "at_most": row.at_most if row.ratio_at_most is None else row.ratio_at_most,
              "at_most_unit": row.unit if row.ratio_at_most is None else "x", "verdict": "-"}
    if row.yardstick:
        result["beside"] = row.yardstick[0]
        result["ratio"] = value / row.yardstick[1](figures)
    judged = value if row.ratio_at_most is None else result["ratio"]
    if not math.isfinite(judged):
        raise ValueError(f"{row.text}: not a number")
    if result["at_most"] is not None:
        result["verdict"] = verdict(row, figures, judged <= result["at_most"])
    return result


def verdict(row, figures, holds):
    if not row.applies(figures):
        return "n/a"
    if holds:
        return "ok"
    return "disturbed" if row.disturbed(figures) else "over"


def line(result):
    digits = 4 if result["unit"] == "" else 1
    value = f"{result['value']:,.{digits}f} {result['unit']}"
    ratio = "" if result["ratio"] is None else f"{result['ratio']:.2f} x"
    at_most = "" if result["at_most"] is None else f"{result['at_most']:g} {result['at_most_unit']}".rstrip()
    return (f"  {result['figure']:<62} {value:>16}  {ratio:>9} {result['beside'] or '':<12} {at_most:>9}  "
            f"{result['verdict']}").rstrip()


def machine():
    found = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{len(os.sched_getaffinity(0))} processors, {found.group(1) if found else os.uname().machine}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    figures, found = read_figures(arguments.folder)
    try:
        judged = {title: [judge(row, figures) for row in rows] for title, rows in {**SECTIONS, "Library of the package": packaged(figures), **found}.items() if rows}
    except (KeyError, ValueError) as missing:
        print(f"table: {arguments.folder}: {missing}", file=sys.stderr)
        return 2
    print(f"{machine()}; minimum of many rounds in turns; threads: medians")
    print(f"  {'':<62} {'figure':>16}  {'ratio':>9} {'yardstick':<12} {'at most':>9}")
    for title, results in judged.items():
        print(title)
        print("\n".join(line(result) for result in results))
    (arguments.folder / "table.json").write_text(json.dumps({"schema": "ration.bench/1", "rows": judged}, indent=1) + "\n")
    over = [result for results in judged.values() for result in results if result["verdict"] == "over"]
    return 1 if arguments.strict and over else 0


if __name__ == "__main__":
    sys.exit(main())
