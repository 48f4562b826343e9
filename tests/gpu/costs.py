"""The item `costs`: a pair of cuMemAlloc and cuMemFree, beside an idle and beside a busy stream, as a ratio to the driver's."""
import json

import items
import tree as trees

PROGRAM = "tests/gpu/programs/pairs"
SECONDS = {"idle": 0.3, "busy": 0.5}
SIZES = {"1MiB": trees.MIB, "64KiB": 64 << 10, "64MiB": 64 * trees.MIB}
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


def tests(check, _):
    sizes = SIZES if check.full else ("1MiB",)
    return [items.Test(f"costs.{size}.{kind}", lambda size=size, kind=kind: report(check, size, kind))
            for size in sizes for kind in SECONDS]
