#!/usr/bin/env python3
"""Settings that change between a parent and its children: whoever makes its first call reads them anew, nobody else."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from harness import BUILD, GIB, MIB, PROGRAMS, clean_environment, driver_folder, expect, expect_that, main, run  # noqa: E402

STEPS = PROGRAMS / "steps"
DEVICE = 4 * GIB
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": str(MIB)}
LOOK = "init context=0 query"  # what a process is shown, and so what holds for it
NONE, TWO = "set=RATION_LIMIT", "set=RATION_LIMIT=2GiB"


def another(ops=LOOK):
    """A child that becomes another program."""
    return f"child:exec={STEPS} {ops}"


def forked(ops=LOOK):
    return f"child:{'+'.join(ops.split())}"


def totals(folder, *steps, **settings):
    done = run("steps", *steps, RATION_STATE_DIR=f"{folder}/state", HOME=folder, XDG_CONFIG_HOME=folder,
               **MACHINE | {"RATION_LIMIT": "1GiB"} | settings)
    expect_that(f"status {done.status}: {done.out} {done.err}", done.status == 0 and done.err == "")
    wrong = [line for line in done.out.splitlines() if not re.search(r"(: 0|status 0)$", line) and "free_null" not in line]
    expect(f"what failed of {done.out}", wrong, [])
    return [int(number) for number in re.findall(r" total=(\d+)", done.out)]


def shown(*steps, wanted, **settings):
    return lambda folder: expect("totals", totals(folder, *steps, **settings), wanted)


PARENT = LOOK.split()  # that has made its first call
BOUND = ["free_null"]  # has been asked for before CUDA is begun with: what a runtime's look-ups do, and fork after them

CASES = {
    "what a process sets before its first call holds for it": shown(TWO, *PARENT, wanted=[2 * GIB]),
    "nothing that it sets later does": shown(*PARENT, TWO, "query", NONE, "query", "set=RATION_DISABLE=1", "query", "context=0", "query",
                                             wanted=[GIB] * 5),
    "another program reads its own": shown(*PARENT, TWO, another(), "query", wanted=[GIB, 2 * GIB, GIB]),
    "no limit": shown(*PARENT, NONE, another(), "query", wanted=[GIB, DEVICE, GIB]),
    "inert": shown(*PARENT, "set=RATION_DISABLE=1", another(), "query", wanted=[GIB, DEVICE, GIB]),
    "of an inert parent": shown(*PARENT, "set=RATION_DISABLE", another(), "query", RATION_DISABLE="1", wanted=[DEVICE, GIB, DEVICE]),
    "0 is not inert": shown(*PARENT, "set=RATION_DISABLE=0", another(), "query", RATION_DISABLE="1", wanted=[DEVICE, GIB, DEVICE]),
    "somebody else's variable": shown(*PARENT, NONE, "set=XLA_PYTHON_CLIENT_MEM_FRACTION=0.5", another(), "query",
                                      wanted=[GIB, 2 * GIB, GIB]),
    "the size that is shown": shown(*PARENT, "set=RATION_SHOW_LIMIT=false", another(), "query", wanted=[GIB, DEVICE, GIB]),
    "a child that is forked before the first call": shown(TWO, forked(), "set=RATION_DISABLE=1", forked(), "set=RATION_DISABLE",
                                                          NONE, forked(), "set=RATION_LIMIT=1GiB", *PARENT,
                                                          wanted=[2 * GIB, DEVICE, DEVICE, GIB]),
    "one that is forked once its parent is bound": shown(*BOUND, TWO, forked(), NONE, forked(), *PARENT,
                                                         wanted=[2 * GIB, DEVICE, GIB]),
    "a child of a child": shown(*PARENT, TWO, another(f"set=RATION_LIMIT=3GiB 'child:exec={STEPS} {LOOK}' {LOOK}"), "query",
                                wanted=[GIB, 3 * GIB, 3 * GIB, GIB]),
    "an inert one stays so where it is forked": shown(*BOUND, "set=RATION_DISABLE", forked(), RATION_DISABLE="1", wanted=[DEVICE]),
}


def inert_once_bound(folder):
    """A child that is told to be inert by a parent that is not is held to nothing, and nothing is taken for it."""
    trace = pathlib.Path(folder) / "trace"
    seen = totals(folder, *BOUND, "set=RATION_DISABLE=1", forked(f"{LOOK} alloc=100m alloc=2000m query"), SIMCUDA_TRACE=trace)
    expect("totals", seen, [DEVICE, DEVICE])
    taken = [line.split()[2] for line in trace.read_text().splitlines() if line.startswith("cuMemAlloc_v2 0")]
    expect("taken from the driver", taken, [str(100 * MIB), str(2000 * MIB)])


def a_file_changes(folder):
    """A child reads the file as it is at its own first call, below whatever its variables say."""
    file = pathlib.Path(folder) / "ration/config.json"
    file.parent.mkdir()
    file.write_text('{"limit": "3GiB"}')
    other = f"child:exec=cp {folder}/other.json {file}"
    (file.parent.parent / "other.json").write_text('{"limit": "2GiB", "show_limit": true}')
    seen = totals(folder, NONE, *PARENT, other, "query", another(), "set=RATION_LIMIT=1GiB", another())
    expect("totals", seen, [3 * GIB, 3 * GIB, 2 * GIB, GIB])


def under_run(folder):
    """An option of `ration run` is its command's until somebody sets the variable anew; then it is the environment's."""
    log = pathlib.Path(folder) / "%p.jsonl"
    environment = clean_environment() | MACHINE | {"LD_LIBRARY_PATH": str(driver_folder("sim")), "HOME": folder}
    done = subprocess.run([BUILD / "bin/ration", "run", "--limit", "1GiB", "--", STEPS, *PARENT, f"set=RATION_LOG={log}", another(), TWO,
                           another(), f"child:exec={BUILD}/bin/ration run --limit 3GiB -- {STEPS} {LOOK}"],
                          env=environment, capture_output=True, text=True, check=False)
    expect(f"status, having said {done.stderr}", done.returncode, 0)
    expect("totals", [int(number) for number in re.findall(r" total=(\d+)", done.stdout)], [GIB, GIB, 2 * GIB, 3 * GIB])
    heads = [json.loads(path.read_text().splitlines()[0]) for path in pathlib.Path(folder).glob("*.jsonl")]
    told = sorted((head["settings"]["limit"]["value"], head["settings"]["limit"]["source"]) for head in heads)
    expect("sources", told, [("1GiB", "flag"), ("2GiB", "environment"), ("3GiB", "flag")])


def nvml_later(folder):
    """NVML's first question comes after the program has changed its variables for its children."""
    done = run("monitor", "init", "context=0", "set=RATION_DISABLE:1", "set=RATION_LIMIT:2GiB", "start", "index=0",
               RATION_STATE_DIR=f"{folder}/state", RATION_LIMIT="1GiB", **MACHINE)
    told = [json.loads(line) for line in done.out.splitlines()]
    expect("total", [answer["v1"][0] for answer in told if answer["op"] == "index=0"], [GIB])


main(CASES
     | {"inert once its parent is bound": inert_once_bound, "a file that changes": a_file_changes, "under ration run": under_run,
        "NVML after CUDA": nvml_later})
