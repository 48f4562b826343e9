#!/usr/bin/env python3
"""Each value of third-party variables, in a process of its own: mode, limit, preallocation, growth, driver calls.
The rows and their columns are in values.txt; every variable of config/third_party/variables.cc must have one."""
import json
import pathlib
import re
import subprocess

from harness import BUILD, MIB, clean_environment, expect, expect_that, main, of_type, run

HERE = pathlib.Path(__file__).parent
CONFIG = HERE.parents[2] / "config"
TABLE = (CONFIG / "third_party/variables.cc").read_text()
READ = set(re.findall(r'^    {"([A-Z_]+)",', TABLE, re.M))
ASKED = 2  # allocations by the program
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": str(256 * MIB)}


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)([kmg]?)", text).groups()
    return int(number) << {"": 0, "k": 10, "m": 20, "g": 30}[unit]


def limits_of(text):
    """The process's own, and that of all processes of the container together, which has a `*`."""
    parts = [part for part in text.split("+") if part != "-"]
    return [next((bytes_of(part.rstrip("*")) for part in parts if part.endswith("*") == shared), None) for shared in (False, True)]


def rows():
    for line in (HERE / "values.txt").read_text().splitlines():
        if not line.startswith("#"):
            entries, wanted, standing = (part.strip() for part in line.split("|"))
            yield entries, wanted.split(), standing.split()


def environment_of(entries):
    return dict(entry.replace("~", " ").split("=", 1) for entry in entries.split())


def backing_for(entries):
    """Slabs, of which each is one driver call, where no entry asks for granules."""
    return {} if "vmm" in entries.lower() or "RATION_BACKING" in entries else {"RATION_BACKING": "slab"}


def driver_calls(trace):
    return sum(line.startswith(("cuMemAlloc_v2", "cuMemAllocFromPoolAsync")) for line in trace.read_text().splitlines())


def sizes(records, calls):
    """The sizes that were preallocated, and how often the pool grew."""
    slabs = of_type(records, "slab_alloc")
    ahead = [slab["size"] for slab in slabs if slab["why"] in ("preallocate", "check")]
    if any(slab["backend"] == "cuMemCreate" for slab in slabs):  # granules, which are more; a range holds no memory
        return [sum(ahead)] if ahead else [], sum(slab["size"] > 0 for slab in slabs) - len(ahead)
    grown = [sample["pool_reserved"] for sample in of_type(records, "sample")]
    if records[0]["mode"] == "async":
        return grown[:calls - ASKED], len(grown) - (calls - ASKED)
    return ahead, len(slabs) - len(ahead)


def row(entries, wanted, standing):
    def case(folder):
        trace = pathlib.Path(folder) / "trace"
        mode, limit, preallocated, growth, calls, lines = wanted
        own, shared = limits_of(limit)
        # in a group slabs are preallocated only in a size that was asked for
        size = {} if shared is None or preallocated == "-" else {"RATION_PREALLOCATE": str(bytes_of(preallocated))}
        done = run("steps", "init", "context=0", "alloc=100m", "alloc=200m", folder=folder, SIMCUDA_TRACE=trace,
                   HOME=folder, XDG_CONFIG_HOME=folder, **MACHINE, **backing_for(entries), **size, **environment_of(entries))
        expect_that(f"status {done.status}: {done.out} {done.err}", done.status == 0)
        records = done.logs["run.jsonl"]
        meta, device = records[0], records[0]["devices"][0]
        expect("driver calls", driver_calls(trace), int(calls))
        ahead, grown = sizes(records, int(calls))
        expect("mode", meta["mode"], mode)
        expect("limit", device["limit"] if device["limit_asked"] else None, own)
        expect("limit of the container", device.get("group_limit"), shared)
        expect("preallocated", ahead, [] if preallocated == "-" else [bytes_of(preallocated)])
        expect("times that the pool grew", grown, int(growth))
        expect(f"lines on stderr: {done.err}", len(done.err.splitlines()), int(lines))
        expect("in the log", [word["standing"] for word in meta["foreign"]], standing)
    return case


def shown_alike(folder):
    """`ration env` shows the same dispositions as the log of a process."""
    for entries, _, standing in rows():
        environment = clean_environment() | {"HOME": folder, "XDG_CONFIG_HOME": folder} | environment_of(entries)
        done = subprocess.run([BUILD / "bin/ration", "env", "--json"], env=environment, capture_output=True, text=True, check=False)
        expect(entries, [word["standing"] for word in json.loads(done.stdout)["foreign"]], standing)


REFUSED = {  # variables, the key, what holds instead
    "RATION_LIMIT=much": ("limit", "at most 75% of each device"),
    "RATION_LIMIT=0=1GiB,0=x": ("limit", "at most 75% of each device"),
    "RATION_GROUP=a RATION_GROUP_LIMIT=much": ("group_limit", "at most 75% of each device"),
    "RATION_GUARANTEE=1GiB": ("guarantee", "none"),
    "RATION_CHARGE_CONTEXT=2": ("charge_context", "true"),
    "GPU_MEMORY_LIMIT=8GiB": ("container_limit", "at most 75% of each device"),
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=8GiB": ("limit", "at most 75% of each device"),
    "XLA_CLIENT_MEM_FRACTION=8GiB": ("limit", "at most 75% of each device"),
    "RATION_HEADROOM=8XB": ("headroom", None),
    "TF_FORCE_GPU_ALLOW_GROWTH=8GiB": ("preallocate", None),
}


def refused_is_not_in_force(entries):
    def case(folder):
        environment = clean_environment() | {"HOME": folder, "XDG_CONFIG_HOME": folder} | environment_of(entries)
        document, table = (subprocess.run([BUILD / "bin/ration", "env", *more], env=environment, capture_output=True, text=True, check=False)
                           for more in (["--json"], []))
        key, instead = REFUSED[entries]
        setting, = (each for each in json.loads(document.stdout)["settings"] if each["key"] == key)
        name, value = entries.split()[-1].split("=", 1)
        expect("value, bytes", (setting["value"], "bytes" in setting), (None, False))
        expect("what holds", (setting.get("instead"), setting.get("refused")), (instead, value if instead else None))
        line, = (each for each in table.stdout.splitlines() if each.startswith(key + " "))
        expect("in the table", f"{instead} ({name}={value} is refused)" in line if instead else f"{name}=" not in line, True)
        expect(f"told once in {table.stdout}{table.stderr}", (table.stdout + table.stderr).count(f"{name}={value}: "), 1)
    return case


def every_variable_has_a_row(_):
    covered = {name.rstrip("0123456789") for entries, *_ in rows() for name in environment_of(entries)} & READ
    print(f"covered: {len(covered)} of {len(READ)} variables")
    expect("variables without a row", READ - covered, set())


def every_variable_is_documented(_):
    """The table of config/README.md has exactly the variables that are parsed."""
    section = (CONFIG / "README.md").read_text().partition("## Third-party variables")[2].partition("\n## ")[0]
    named = {name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`([A-Z_]{9,})`", line.split("|")[1])}
    expect("in the table", named, READ)


main({entries: row(entries, wanted, standing) for entries, wanted, standing in rows()}
     | {f"not in force: {entries}": refused_is_not_in_force(entries) for entries in REFUSED}
     | {"ration env": shown_alike, "every variable has a row": every_variable_has_a_row,
        "every variable is documented": every_variable_is_documented})
