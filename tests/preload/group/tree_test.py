#!/usr/bin/env python3
"""`ration run --group-tree`: all processes that a run starts are one group."""
from members import MIB, MODES, OBEY, RATION, REFUSED, Machine, ended_clean, expect, expect_that
from harness import GIB, main, of_type, read_log

TREE = "--group-tree=1GiB"
SHELL_OBEY = " ".join(map(str, OBEY))
BECOME = {"forked": "obey", "executed": f"exec={SHELL_OBEY}"}


def enter_child(member, how):
    """From now on a child of the member executes the ops, and the member waits for it."""
    member.send(f"child:{how}")


def leave_child(member):
    member.send("")
    expect("the child's end", (member.read(), member.read()), ("obey: 0", "child: status 0"))


def child(how):
    """After a parent has used CUDA, only an exec'd child can use it too."""
    def case(folder):
        with Machine(folder, **MODES["direct"]) as machine:
            member = machine.ration_run(TREE)
            if how == "executed":
                member.do("init context=0 alloc=400m")
            enter_child(member, BECOME[how])
            member.do("init context=0 alloc=600m")
            if how == "executed":
                expect("over the tree's limit", member("alloc=100m"), REFUSED)
                rows = machine.ps()["processes"]
                expect("held", sorted(row["reserved_bytes"] for row in rows), [400 * MIB, 600 * MIB])
                expect("one tree", len({row["group"] for row in rows}), 1)
                expect("its kind", {one["kind"] for row in rows for one in row["groups"]}, {"tree"})
            else:
                expect("over the tree's limit", member("alloc=500m"), REFUSED)
            leave_child(member)
            member.do("alloc=600m" if how == "executed" else "init context=0 alloc=1000m")
            expect("over the tree's limit", member("alloc=100m"), REFUSED)
            ended_clean(machine)
    return case


def two_runs(folder):
    """Two runs are two trees."""
    with Machine(folder, **MODES["direct"]) as machine:
        for member in (machine.ration_run(TREE), machine.ration_run(TREE)):
            member.do("init context=0 alloc=1000m")
        expect("trees", [(row["kind"], row["limit"], row["reserved_bytes"]) for row in machine.ps()["groups"]],
               [("tree", GIB, 1000 * MIB)] * 2)
        ended_clean(machine)


def nested(folder):
    """A nested run is under both limits."""
    with Machine(folder, **MODES["direct"], RATION_LOG=f"{folder}/%p.jsonl") as machine:
        member = machine.ration_run(TREE)
        member.do("init context=0 alloc=100m")
        enter_child(member, f"exec={RATION} run --group-tree=512MiB -- {SHELL_OBEY}")
        member.do("init context=0 alloc=500m")
        expect("over the inner limit", member("alloc=100m"), REFUSED)
        leave_child(member)
        member.do("alloc=800m")
        enter_child(member, f"exec={RATION} run --group-tree=512MiB -- {SHELL_OBEY}")
        member.do("init context=0 alloc=100m")
        expect("over the outer limit", member("alloc=100m"), REFUSED)
        leave_child(member)
        ended_clean(machine)
        logs = [read_log(path) for path in machine.folder.glob("*.jsonl")]
    limits = sorted(oom["group_limit"] for log in logs for oom in of_type(log, "oom"))
    expect("limits in the refusals", limits, [512 * MIB, GIB])
    expect_that("refused by trees", all(oom["group"].startswith("tree:") for log in logs for oom in of_type(log, "oom")))


def beside_a_group(folder):
    """With a named group both limits apply, each to its own members."""
    with Machine(folder, **MODES["direct"]) as machine:
        member = machine.ration_run(TREE, "--group", "g", "--group-limit", "700MiB")
        outside = machine.member(RATION_GROUP="g")
        outside.do("alloc=300m")
        member.do("init context=0")
        expect("over the group's limit", member("alloc=500m"), REFUSED)
        member.do("alloc=400m")
        outside.do("free=0")
        member.do("alloc=300m")
        expect("over the group's limit", outside("alloc=1m"), REFUSED)
        enter_child(member, f"exec=env -u RATION_GROUP -u RATION_GROUP_LIMIT {SHELL_OBEY}")
        member.do("init context=0 alloc=300m")
        expect("over the tree's limit", member("alloc=100m"), REFUSED)
        leave_child(member)
        ended_clean(machine)


main({f"a {how} child shares its parent's tree": child(how) for how in BECOME} |
     {"two runs are two trees": two_runs, "a nested run": nested, "with a named group": beside_a_group})
