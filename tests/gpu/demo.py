"""The item `demo`: examples/share_one_gpu with NVIDIA's runtime, linked statically and as a shared library."""
import shutil

import items
import runtime
import tree as trees

EXAMPLE = "examples/share_one_gpu"
SECONDS = 120


def stage(check, kind, program):
    """A folder that looks like a build folder to run.sh, with this program as the one that uses the runtime."""
    folder = check.tree.scratch / f"demo-{kind}"
    (folder / EXAMPLE).mkdir(parents=True)
    for name in ("bin", "lib"):
        (folder / name).symlink_to(check.tree.path(name))
    (folder / EXAMPLE / "driver_fill").symlink_to(check.tree.path(f"{EXAMPLE}/driver_fill"))
    if program:
        (folder / EXAMPLE / "runtime_fill_toolkit").symlink_to(program)
    return folder


def report(check, kind):
    if not check.tree.has(f"{EXAMPLE}/driver_fill"):
        raise items.Skip(f"{EXAMPLE} is not built")
    program = None if check.tree.sim else runtime.program(check, f"runtime_fill_{kind}")
    folder = stage(check, kind, program)
    command = [trees.SOURCE / EXAMPLE / "run.sh", *(["--sim"] if check.tree.sim else []), folder]
    ended = check.run(f"demo.{kind}", command, SECONDS, LD_LIBRARY_PATH=runtime.library_path(check))
    last = (ended.out.splitlines() or [""])[-1]
    figures = {"seconds": round(ended.seconds, 1), "last": last, "output": ended.out.splitlines()[-24:]}
    if check.raw and (folder / "demo").is_dir():
        shutil.copytree(folder / "demo", check.raw / f"demo-{kind}", ignore=shutil.ignore_patterns("machine", "*.stdin"),
                        dirs_exist_ok=True)
    holds = ended.status == 0 and last.startswith("demo: ok") and ("device=sim" in last) == check.tree.sim
    if holds:
        return items.Outcome("ok", figures)
    return items.Outcome("failed", figures | ended.tail(), last or ended.why())


def tests(check, _):
    kinds = ("sim",) if check.tree.sim else ("static", "shared")
    return [items.Test(f"demo.{kind}", lambda kind=kind: report(check, kind)) for kind in kinds]
