#!/usr/bin/env python3
"""The table of scripts/bench.sh: every row is present, and each bound can be exceeded. No figure is judged here.

The environment is that of harness.py.
"""
import functools
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "preload"))

from harness import BUILD, expect, expect_that, main  # noqa: E402

# Every required row: its bound as printed, and a figure that exceeds it when all others are those of `QUIET`.
WANTED = {
    "std::mutex, lock and unlock": None,
    "std::map, a look-up in 1,000 entries": None,
    "malloc and free, 1,000 live, sizes / 1024": None,
    "malloc and free, 10,000 live, sizes / 1024": None,
    "malloc and free, 100,000 live, sizes / 1024": None,
    "random replacement, 1,000 live": ("6 x", "alone.replace_1000", 61),
    "last in, first out, 1,000 live": ("6 x", "alone.lifo_1000", 61),
    "random replacement, 10,000 live": ("1.5 x", "alone.replace_10000", 91),
    "random replacement, 100,000 live": ("4 x", "alone.replace_100000", 241),
    "99th percentile of an allocate, 1,000 live": ("500 ns", "alone.p99_allocate_1000", 501),
    "99th percentile of a free, 1,000 live": ("500 ns", "alone.p99_free_1000", 501),
    "metadata per block, 1,000 live": ("64 bytes", "alone.metadata_1000", 64.5),
    "metadata per block, 10,000 live": ("64 bytes", "alone.metadata_10000", 64.5),
    "metadata per block, 100,000 live": ("64 bytes", "alone.metadata_100000", 64.5),
    "processor time used by other processes": None,
    "one thread, a pair": None,
    "two threads, a pair of one thread": ("2.5 x", "threads.threads_1", 39.9),
    "four threads, time per pair of all": ("2 x", "threads.threads_4", 401),
    "eight threads, time per pair of all": ("2 x", "threads.threads_8", 801),
    "without a group": None,
    "in a group of one process": None,
    "in a group of 1,024 processes": ("1.2 x", "ledger.registered_1024", 121),
    "the driver's cuCtxGetCurrent, one call": None,
    **{f"{kind}: {what}": bound
       for kind, figure in (("last in, first out", "lifo_1000"), ("replacement in turn", "replace_1000"))
       for what, bound in (("pool alone", None), ("pool alone, retired and reclaimed later", None), ("through the library", None),
                           ("over granules", ("1.03 x", f"pool.{figure}_slabs", 174)),
                           ("the driver's cuCtxGetCurrent in it", None),
                           ("library - driver - pool alone", ("80 ns", f"pool.{figure}_through", 181)))},
    "last in, first out: the package's library": ("1.05 x", "pool.lifo_1000_packaged", 190),
    "replacement in turn: the package's library": ("1.05 x", "pool.replace_1000_packaged", 190),
    "train": ("1.0075", "train", 1.0076),
    "train-7": ("1.0085", "train-7", 1.0086),
    "steady1k-7": ("1.15", "steady1k-7", 1.1501),
    "shape_without_a_bound": None,
    "ledger_reserve_release/threads:1": None,
    "start.bin_true": None,
    "dlsym.hooked_name": None,
    "dlsym.foreign_name": ("1.5 x", "dlsym.foreign_name", (100, 151)),
    "dlsym.foreign_name_found": ("1.5 x", "dlsym.foreign_name_found", (100, 151)),
    "hook.alloc_free": None,
    "a record: half of what a log adds to a pair": ("2 x", "log.pair_logged", 2101),
    "a stack of 16 calls that was seen before": ("1 x", "log.pair_stacks", 2601),
    "a stack of 16 calls, one of a thousand": None,
}
TRACES = ("train", "train-7", "steady1k-7", "shape_without_a_bound")

# A machine on which every figure is at its bound.
QUIET = {
    "alone": {"mutex": 10, "map_1000": 10, "malloc_1000": 10, "malloc_10000": 10, "malloc_100000": 10,
              "replace_1000": 60, "lifo_1000": 60, "replace_10000": 90, "replace_100000": 240, "p99_allocate_1000": 500,
              "p99_free_1000": 500, "metadata_1000": 64, "metadata_10000": 64, "metadata_100000": 64},
    "threads": {"processors": 2, "threads_1": 40, "threads_2": 100, "threads_4": 400, "threads_8": 800, "others": 5},
    "ledger": {"mutex": 10, "registered_0": 10, "registered_1": 100, "registered_1024": 120},
    "pool": {"get_current_through": 20, "lifo_1000_alone": 60, "lifo_1000_quarantined": 90, "lifo_1000_through": 180,
             "lifo_1000_slabs": 176, "lifo_1000_packaged": 189, "lifo_1000_calls_through": 2, "replace_1000_alone": 60, "replace_1000_quarantined": 90,
             "replace_1000_through": 180, "replace_1000_slabs": 176, "replace_1000_packaged": 189, "replace_1000_calls_through": 2},
    "log": {"write": 500, "pair": 100, "pair_logged": 2100, "pair_stacks": 2600, "pair_paths": 5000},
    "dlsym": {"foreign_name": (100, 150), "foreign_name_found": (100, 150)},
}
QUIET_ARENAS = {"train": 1.0075, "train-7": 1.0085, "steady1k-7": 1.15, "shape_without_a_bound": 9}

ROW = re.compile(r"  (?P<figure>\S.*?) +(?P<value>-?[\d,]+\.\d+) (?P<unit>ns|us|bytes|%|)"
                 r"( +(?P<ratio>-?[\d.]+ x) (?P<yardstick>\S.*?))?( +(?P<bound>[\d.]+( (x|ns|bytes))?))? +(?P<verdict>ok|over|disturbed|n/a|-)")


def rows_of(text):
    rows = {}
    for line in text.splitlines()[2:]:
        if not line.startswith("  "):
            continue  # a section's title
        row = ROW.fullmatch(line)
        expect_that(f"an unparsable row: {line!r}", row is not None)
        expect_that(f"a duplicate row: {line!r}", row["figure"] not in rows)
        rows[row["figure"]] = row
    return rows


@functools.cache
def smoke():
    """The table of one run of the script with an existing build and with traces."""
    with tempfile.TemporaryDirectory() as folder:
        traces = pathlib.Path(folder) / "traces"
        traces.mkdir()
        text = "# two blocks\na 0 4096\na 1 1048576\nf 0\na 0 8192\nf 1\nf 0\n"
        for name in TRACES[:2]:
            (traces / f"{name}.trace").write_text(text)
        for name in TRACES[2:]:
            (traces / f"{name}.trace.xz").write_bytes(lzma.compress(text.encode()))
        done = subprocess.run([HERE.parents[1] / "scripts/bench.sh", "--smoke", "--built", BUILD, "--traces", traces,
                               "--packaged", BUILD / "lib/libration.so",
                               f"{folder}/out"], capture_output=True, text=True, check=False)
        expect(f"status; {done.stderr}", done.returncode, 0)
        written = json.loads((pathlib.Path(folder) / "out/table.json").read_text())
        return rows_of(done.stdout), [row for rows in written["rows"].values() for row in rows]


def table(folder, figures, arenas, *options):
    folder = pathlib.Path(folder)
    for bench, values in figures.items():
        listed = [{"name": name, "unit": ""} |
                  ({"without": value[0], "with": value[1]} if isinstance(value, tuple) else {"value": value})
                  for name, value in values.items()]
        (folder / f"bench_{bench}.json").write_text(json.dumps({"bench": bench, "figures": listed}))
    for name, ratio in arenas.items():
        (folder / f"replay_{name}.json").write_text(json.dumps({"min_arena_ratio": ratio}))
    return subprocess.run([HERE / "table.py", *options, folder], capture_output=True, text=True, check=False)


def with_figure(name, value):
    """QUIET with one figure replaced."""
    figures, arenas = {bench: dict(values) for bench, values in QUIET.items()}, dict(QUIET_ARENAS)
    if name in arenas:
        arenas[name] = value
    else:
        bench, figure = name.split(".")
        figures[bench][figure] = value
    return figures, arenas


def is_there(wanted, bound):
    def case(_):
        rows, _written = smoke()
        expect_that(f"not in the table: {wanted}", wanted in rows)
        expect("bound", rows[wanted]["bound"], bound)
        expect_that(f"verdict {rows[wanted]['verdict']}", (rows[wanted]["verdict"] == "-") == (bound is None))
    return case


def can_be_over(wanted, figure, value):
    def case(folder):
        done = table(folder, *with_figure(figure, value))
        expect(f"status; {done.stderr}", done.returncode, 0)
        expect("over", [name for name, row in rows_of(done.stdout).items() if row["verdict"] == "over"], [wanted])
        expect("status with --strict", table(folder, {}, {}, "--strict").returncode, 1)
    return case


def a_figure_at_its_bound_is_ok(folder):
    done = table(folder, QUIET, QUIET_ARENAS, "--strict")
    expect(f"status; {done.stdout}", done.returncode, 0)
    judged = [name for name, row in rows_of(done.stdout).items() if row["verdict"] == "ok"]
    expect("judged", sorted(judged), sorted(name for name, bound in WANTED.items() if bound))


def thread_rows_are_not_judged_on_one_processor(folder):
    done = table(folder, *with_figure("threads.processors", 1))
    expect("not judged", [name for name, row in rows_of(done.stdout).items() if row["verdict"] == "n/a"],
           [name for name in WANTED if re.match("(two threads, a|four|eight)", name)])


def load_of_other_processes_exceeds_no_bound(folder):
    figures, arenas = with_figure("threads.others", 5.1)
    figures["threads"]["threads_2"] = 300
    done = table(folder, figures, arenas, "--strict")
    expect(f"status; {done.stdout}", done.returncode, 0)
    expect("verdict", rows_of(done.stdout)["two threads, a pair of one thread"]["verdict"], "disturbed")


def a_difference_below_zero_is_a_row(folder):
    done = table(folder, *with_figure("log.pair_stacks", 2000), "--strict")
    expect(f"status; {done.stdout}", done.returncode, 0)
    row = rows_of(done.stdout)["a stack of 16 calls that was seen before"]
    expect("value, ratio, verdict", (row["value"], row["ratio"][0], row["verdict"]), ("-100.0", "-", "ok"))


def a_missing_figure_is_an_error(folder):
    figures, arenas = with_figure("alone.mutex", 10)
    del figures["pool"]["lifo_1000_alone"]
    done = table(folder, figures, arenas)
    expect("status", done.returncode, 2)
    expect_that(f"message: {done.stderr}", "pool.lifo_1000_alone" in done.stderr)


def file_and_text_agree(_):
    rows, written = smoke()
    expect("figures", [row["figure"] for row in written], list(rows))
    expect("verdicts", [row["verdict"] for row in written], [row["verdict"] for row in rows.values()])


main({
    **{f"present: {wanted}": is_there(wanted, bound and bound[0]) for wanted, bound in WANTED.items()},
    **{f"can be over: {wanted}": can_be_over(wanted, *bound[1:]) for wanted, bound in WANTED.items() if bound},
    **{name.__name__.replace("_", " "): name for name in
       (a_figure_at_its_bound_is_ok, thread_rows_are_not_judged_on_one_processor,
        load_of_other_processes_exceeds_no_bound, a_difference_below_zero_is_a_row, a_missing_figure_is_an_error,
        file_and_text_agree)},
})
