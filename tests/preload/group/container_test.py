#!/usr/bin/env python3
"""The limit of a container: the processes of one PID namespace that state the same share it, by our name and by HAMi's and KAI's."""
import subprocess

from members import BUILD, HANG, MIB, MODES, OBEY, REFUSED, SANITIZED, Machine, ended_clean, expect, expect_that
from harness import GIB, main, of_type, read_log

LIMIT = 4 * GIB
DEVICE = "16GiB"
OURS, HAMI, KAI = {"RATION_CONTAINER_LIMIT": "4GiB"}, {"CUDA_DEVICE_MEMORY_LIMIT": "4g"}, {"GPU_MEMORY_LIMIT": str(LIMIT)}
STATED = {"ours": OURS, "HAMi's": HAMI, "HAMi's for a device": {"CUDA_DEVICE_MEMORY_LIMIT_0": "4g"}, "KAI's": KAI}
IN_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")


def machine_of(folder, mode="direct", **settings):
    return Machine(folder, devices=DEVICE, **MODES[mode], **settings)


def groups_of(machine):
    return sorted((row["kind"], row["limit"], row["reserved_bytes"], row["process_count"]) for row in machine.ps()["groups"])


def fill(first, second):
    """The two hold 4000 MiB, and no more than 4096 together."""
    first.do("alloc=2500m")
    expect("two thirds for the second as well", second("alloc=2500m"), REFUSED)
    second.do("alloc=1500m")
    for member in (first, second):
        expect("over the limit", member("alloc=100m"), REFUSED)


def together(settings, mode):
    def case(folder):
        with machine_of(folder, mode, **settings) as machine:
            first, second = machine.member(RATION_LOG=machine.folder / "log"), machine.member()
            for member in (first, second):
                expect("total", member.memory()[1], LIMIT)
            fill(first, second)
            row, = machine.ps()["groups"]
            expect("the group", (row["kind"], row["limit"], row["process_count"]), ("container", LIMIT, 2))
            expect_that(f"reserved {row}", 4000 * MIB <= row["reserved_bytes"] <= LIMIT)
            expect_that(f"free {first.memory()}", first.memory()[0] <= LIMIT - 4000 * MIB)
            expect("nothing is said", first.err() + second.err(), "")
            ended_clean(machine)
        log = read_log(machine.folder / "log")
        expect("limits", [log[0]["devices"][0].get(key) for key in ("limit_asked", "group_limit")], [False, LIMIT])
        for oom in of_type(log, "oom"):
            expect("refused by", (oom["reason"], oom["group_limit"]), ("group", LIMIT))
            expect_that(f"name {oom['group']}", oom["group"].startswith("container:"))
    return case


def shown(folder):
    """`ration ps` shows the group of each process: its name, its kind, its limit."""
    with machine_of(folder, **HAMI) as machine:
        machine.member().do("alloc=100m")
        seen = machine.ps()
        (process,), (group,) = seen["processes"], seen["groups"]
        name = group["name"]
        expect("name", (name.split("-")[0], len(name.split("-")[1])), (str(process["pid_namespace"]), 8))
        expect("group", (group["group"], group["kind"]), (f"container:{name}", "container"))
        expect("of the process", process["groups"], [{"group": f"container:{name}", "name": name, "kind": "container", "limit": LIMIT,
                                                      "limit_stated": LIMIT, "process_claimed_bytes": process["reserved_bytes"]}])
        expect("files", sorted(path.name for path in machine.state.iterdir()), [f"container-{name}", "ungrouped"])
        table = subprocess.run([BUILD / "bin/ration", "ps"], env=machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)},
                               capture_output=True, text=True, timeout=HANG, check=True).stdout
        expect(f"rows with the name in {table}", table.count(f"container:{name}"), 2)
        ended_clean(machine)


def reported(folder):
    """`ration report` names the option that would help."""
    with machine_of(folder, **KAI) as machine:
        member = machine.member(RATION_LOG=machine.folder / "log")
        expect("over the limit", member("alloc=5000m"), REFUSED)
        ended_clean(machine)
    said = subprocess.run([BUILD / "bin/ration", "report", machine.folder / "log"], capture_output=True, text=True, timeout=HANG, check=True)
    expect_that(f"the remedy in {said.stdout}", "a larger --container-limit would help" in said.stdout)


def apart(first, second):
    """Each gets what it states, however much the other holds."""
    def case(folder):
        with machine_of(folder) as machine:
            members = [machine.member(**settings) for settings in (first, second)]
            for member in members:
                member.do("alloc=2500m")
            expect("groups", [(kind, held, processes) for kind, _, held, processes in groups_of(machine)],
                   [("container", 2500 * MIB, 1)] * 2)
            ended_clean(machine)
    return case


def overridden(ours, wanted):
    """A limit of ours takes the place of HAMi's: of each process, or of the container."""
    def case(folder):
        with machine_of(folder, **HAMI) as machine:
            first, second = machine.member(**ours), machine.member(**ours)
            expect("total", first.memory()[1], 3 * GIB)
            first.do("alloc=2500m")
            expect("the second", second("alloc=2500m"), wanted)
            ended_clean(machine)
    return case


def killed(mode):
    """What a killed process held is its neighbour's."""
    def case(folder):
        with machine_of(folder, mode, **HAMI) as machine:
            victim, survivor = machine.member(), machine.member()
            fill(victim, survivor)
            victim.kill()
            survivor.do("alloc=2500m")
            expect("over the limit", survivor("alloc=100m"), REFUSED)
            ended_clean(machine)
    return case


def preallocated(folder):
    """What the first preallocates, all of the limit, and does not use is the second's."""
    with Machine(folder, devices=DEVICE, RATION_HEADROOM="0", RATION_PREALLOCATE_AFTER="0", RATION_PREALLOCATE="4GiB",
                 **HAMI) as machine:
        first, second = machine.member(), machine.member()
        first.do("alloc=1000m")
        expect("all of it", [held for _, _, held, _ in groups_of(machine)], [LIMIT])
        expect_that("the second is served", any(second("alloc=1000m") == 0 for _ in range(30)))
        expect_that("the limit", groups_of(machine)[0][2] <= LIMIT)
        ended_clean(machine)


def by_ration_run(folder):
    with machine_of(folder) as machine:
        first, second = (machine.ration_run("--container-limit", "4GiB") for _ in range(2))
        for member in (first, second):
            member.do("init context=0")
        fill(first, second)
        outside = machine.member(RATION_CONTAINER_LIMIT="4GiB")
        expect("the same limit by a variable", outside("alloc=100m"), REFUSED)
        ended_clean(machine)


def has_namespaces():
    allowed = subprocess.run([*IN_NAMESPACE, "--mount-proc", "true"], capture_output=True, text=True, check=False)
    if allowed.returncode != 0:
        print(f"skipped: no PID namespaces: {allowed.stderr.strip()}")
    return allowed.returncode == 0


def in_namespace(machine, proc):
    """A process of a PID namespace of its own, with a /proc of its own or that of the namespace around it."""
    environment = machine.environment()
    preload = environment.pop("LD_PRELOAD")
    member = machine.launch([*IN_NAMESPACE, *proc, "env", f"LD_PRELOAD={preload}", *OBEY], environment)
    member.do("init context=0")
    return member


def namespaces(folder):
    """Containers with the same limit, on one device and in one state folder, have one each."""
    if not has_namespaces():
        return
    around = ["--mount-proc"] if SANITIZED else []  # LeakSanitizer looks for its own threads in /proc
    with machine_of(folder, **HAMI) as machine:
        outside, inside = machine.member(), in_namespace(machine, ["--mount-proc"])
        other = machine.member()
        fill(outside, other)
        inside.do("alloc=2500m")
        neighbour = in_namespace(machine, around)
        neighbour.do("alloc=2500m")
        expect("over the limit", inside("alloc=1600m"), REFUSED)
        inside.do("alloc=1500m")
        expect("groups", groups_of(machine), sorted([("container", LIMIT, 4000 * MIB, 2), ("container", LIMIT, 4000 * MIB, 1),
                                                     ("container", LIMIT, 2500 * MIB, 1)]))
        ended_clean(machine)


def beside_a_tree(folder):
    """Both limits hold, each with its own members."""
    with machine_of(folder, **HAMI) as machine:
        inside, outside = machine.ration_run("--group-tree=1GiB"), machine.member()
        inside.do("init context=0 alloc=900m")
        expect("over the tree's limit", inside("alloc=200m"), REFUSED)
        outside.do("alloc=3100m")
        expect("over the container's limit", inside("alloc=100m"), REFUSED)
        outside.do("free=0")
        inside.do("alloc=100m")
        ended_clean(machine)


def unusable(settings):
    """No memory where the ledger cannot be used, and one line."""
    def case(folder):
        with machine_of(folder, **settings) as machine:
            machine.state.mkdir()
            machine.state.chmod(0o770)
            member = machine.member()
            for op in ("alloc=1", "alloc=100m"):
                expect(op, member(op), REFUSED)
            line, = member.err().splitlines()
            expect_that(f"the line: {line}", line.startswith("ration: container ") and "other users may write to it" in line
                        and " cannot be joined, so every allocation is refused: " in line)
            member.ends()
    return case


CASES = {f"{whose} limit, mode {mode}": together(settings, mode) for whose, settings in STATED.items() for mode in MODES}
CASES |= {f"a killed process, mode {mode}": killed(mode) for mode in MODES}
CASES |= {f"without a ledger, {whose} limit": unusable(settings) for whose, settings in (("our", OURS), ("HAMi's", HAMI))}
main(CASES | {"another value": apart(HAMI, {"CUDA_DEVICE_MEMORY_LIMIT": "3g"}), "another variable": apart(HAMI, KAI),
              "a limit of ours is of each process": overridden({"RATION_LIMIT": "3GiB"}, 0),
              "a container's limit of ours": overridden({"RATION_CONTAINER_LIMIT": "3GiB"}, REFUSED),
              "ration ps": shown, "ration report": reported, "preallocated memory": preallocated, "ration run": by_ration_run,
              "PID namespaces": namespaces, "in a tree": beside_a_tree})
