"""The item `costs`: a pair of cuMemAlloc and cuMemFree, beside an idle and beside a busy stream, as a ratio to the driver's;
the first allocation of a process; a block that is stitched."""
import json
import statistics

import items
import tree as trees

PROGRAM = "tests/gpu/programs/pairs"
SECONDS = {"idle": 0.3, "busy": 0.5}
SIZES = {"1MiB": trees.MIB, "64KiB": 64 << 10, "64MiB": 64 * trees.MIB}
FIRST, STITCH = "tests/gpu/programs/first", "tests/gpu/programs/stitch"
ORDER = (trees.NATIVE, "slab", "vmm", "async", "direct")


def measured(check, variant, bytes_each, kind):
    seconds = 0.05 if check.tree.sim else SECONDS[kind]
    command, settings = check.tree.under(variant, [check.tree.path(PROGRAM), str(seconds), str(bytes_each), kind])
    ended = check.run(f"costs.{variant}.{bytes_each}.{kind}", command, 30, **settings)
    if ended.status != 0:
        raise RuntimeError(f"{variant}: {ended.why()}")
    return json.loads(ended.out)


def report(check, size, kind):
    if not check.tree.has(PROGRAM):
        raise items.Skip(f"{PROGRAM} is not built")
    figures = {variant: measured(check, variant, SIZES[size], kind) for variant in ORDER}
    native = figures[trees.NATIVE]["median_ns"]
    ratios = {variant: round(figures[variant]["median_ns"] / native, 4) for variant in ORDER[1:] if native > 0}
    return items.Outcome("ok", figures | {"ratio_of_medians": ratios})


def json_of(check, name, command, **settings):
    ended = check.run(name, command, 30, **settings)
    if ended.status != 0:
        raise RuntimeError(f"{name}: {ended.why()}")
    return json.loads(ended.out)


def first(check, rounds=5):
    """In turns: each round starts one process of each variant."""
    if not check.tree.has(FIRST):
        raise items.Skip(f"{FIRST} is not built")
    seen = {variant: [] for variant in (trees.NATIVE, "slab", "vmm")}
    for turn in range(rounds):
        for variant, figures in seen.items():
            command, settings = check.tree.under(variant, [check.tree.path(FIRST)])
            figures.append(json_of(check, f"costs.first.{variant}.{turn}", command, **settings)["first_ns"])
    medians = {variant: statistics.median(figures) for variant, figures in seen.items()}
    return items.Outcome("ok", {"first_ns": seen, "median_ns": medians, "vmm_over_slab": round(medians["vmm"] / medians["slab"], 3)})


def stitched(check):
    if not check.tree.has(STITCH):
        raise items.Skip(f"{STITCH} is not built")
    command, settings = check.tree.under("vmm", [check.tree.path(STITCH)], limit="4GiB")
    return items.Outcome("ok", json_of(check, "costs.stitched", command, RATION_GRANULE="2MiB", **settings))


def tests(check, _):
    sizes = SIZES if check.full else ("1MiB",)
    pairs = [items.Test(f"costs.{size}.{kind}", lambda size=size, kind=kind: report(check, size, kind))
             for size in sizes for kind in SECONDS]
    return pairs + [items.Test("costs.first", lambda: first(check)), items.Test("costs.stitched", lambda: stitched(check))]
