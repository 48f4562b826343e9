#!/usr/bin/env python3
"""Containers with shares of a GPU: Podman and crun with what `ration cdi` writes, over the simulated driver."""
import json
import os
import pathlib
import re
import subprocess
import sys

from engines import BUILD, GIB, HANG, RATION, SIMULATOR, TESTS, expect, expect_that, main, needs, simulated, skip

sys.path.insert(0, str(TESTS / "preload/group"))
from members import Member, REFUSED  # noqa: E402

STEPS = BUILD / "tests/preload/programs/steps"
INSIDE = "in_a_namespace"


def in_own_namespace():
    """Podman of Debian 12 reads /run/cdi only: a /run of this test's own. crun needs one hierarchy of cgroups. What it starts
    ends with the test."""
    if os.geteuid() != 0:
        skip("rootless Podman needs subordinate user IDs, which this user may not have: run it as root")
    for program, package in (("podman", "podman"), ("crun", "crun"), ("unshare", "util-linux")):
        needs(program, package)
    if sys.argv[1:2] != [INSIDE]:
        apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
        os.execvp("unshare", [*apart, sys.executable, __file__, INSIDE])
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=False).returncode != 0:
        skip("a container may not mount")
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind = line.split()[:3]
        if kind == "cgroup2" and place != "/sys/fs/cgroup":
            subprocess.run(["umount", place], check=False)


class Engine:
    """Podman with folders of its own, one simulated machine, and a root folder whose programs are this machine's."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.environment = simulated(folder)
        self.state = self.folder / "state"
        self.root = self.folder / "root"
        for name in ("etc", "proc", "dev", "sys", "tmp", "run", "usr", "var", "build", "machine"):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "lib", "lib64", "sbin"):
            (self.root / name).symlink_to(f"usr/{name}")
        pathlib.Path("/run/cdi").mkdir(exist_ok=True)
        self.podman = ["podman", "--root", self.folder / "store", "--runroot", self.folder / "runroot", "--runtime", "crun",
                       "--cgroup-manager", "cgroupfs"]
        self.members = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name, member in self.members:
            self.kill(name)
            member.process.kill()
            member.process.wait()
            member.process.stdin.close()
            member.process.stdout.close()
        for spec in pathlib.Path("/run/cdi").iterdir():
            spec.unlink()

    def cdi(self, *words):
        subprocess.run([RATION, "cdi", *words, "-o", "/run/cdi/ration.json"], check=True, env=self.environment)

    def command(self, share, command, *flags):
        simulation = {"LD_LIBRARY_PATH": "/build/sim", "SIMCUDA_DEVICES": "16GiB", "SIMCUDA_MACHINE": "/machine"}
        return [*self.podman, "run", "--rm", "-i", "--cgroups=disabled", "--network=none", "--ulimit=nofile=1024:1024",
                "--ulimit=nproc=1000:1000",
                *(["--device", f"ration.dev/share={share}"] if share else []), "-v", "/usr:/usr:ro", "-v", f"{SIMULATOR}:/build/sim:ro",
                "-v", f"{STEPS}:/build/steps:ro", "-v", f"{self.environment['SIMCUDA_MACHINE']}:/machine",
                *(word for key, value in simulation.items() for word in ("-e", f"{key}={value}")), *flags, "--rootfs", self.root, *command]

    def start(self, share, *flags, name=None):
        """A container whose program executes lines."""
        name = name or f"c{len(self.members)}"
        member = Member(self.command(share, ["/build/steps", "obey"], "--name", name, *flags), self.environment, self.folder)
        self.members.append((name, member))
        return member

    def run(self, share, command, *flags):
        return subprocess.run(self.command(share, command, *flags), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=HANG, check=False)

    def kill(self, name):
        subprocess.run([*self.podman, "kill", name], env=self.environment, capture_output=True, check=False)

    def ps(self):
        done = subprocess.run([RATION, "ps", "--json"], env=self.environment | {"RATION_STATE_DIR": str(self.state)},
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


def unlike_shares(folder):
    """Each sees its own as the device, and gets it; the sum fits."""
    with Engine(folder) as engine:
        engine.cdi("25%", "8GiB", "small=2GiB")
        members = {share: engine.start(share) for share in ("25pct", "8GiB", "small")}
        for (share, member), size in zip(members.items(), (4, 8, 2)):
            member.do("init context=0")
            expect(f"what {share} sees", member.memory(), (size * GIB, size * GIB))
            member.do(f"alloc={size * 1024 - 64}m")
            expect("more", member("alloc=100m"), REFUSED)
        done = engine.run("30pct", ["/bin/true"])
        expect_that(f"an unknown share: {done.stderr}", done.returncode != 0 and "ration.dev/share=30pct" in done.stderr)
        done = engine.run("", ["/bin/sh", "-c", "echo \"<$LD_PRELOAD>\"; env"])
        expect_that(f"nothing without a share: {done.stdout}", done.stdout.startswith("<>\n") and "RATION" not in done.stdout)


def processes_of_one_container(folder):
    """Share one limit."""
    with Engine(folder) as engine:
        engine.cdi("2GiB")
        script = ("mkfifo /tmp/steps; /build/steps obey </tmp/steps & exec 3>/tmp/steps; echo init >&3; echo context=0 >&3; "
                  "echo alloc=1500m >&3; read line; /build/steps init context=0 alloc=1500m alloc=400m; exec 3>&-; wait")
        member = subprocess.Popen(engine.command("2GiB", ["/bin/sh", "-c", script]), env=engine.environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        for step in ("init", "context=0", "alloc=1500m"):
            expect("the first", member.stdout.readline(), f"{step}: 0\n")
        said, _ = member.communicate("second\n", timeout=HANG)
        expect_that(f"the second: {said}", "alloc=1500m: 2\nalloc=400m: 0\n" in said)


def group_of_containers(folder):
    """Containers in a group share its limit through the folder; a killed one leaves its room to the next."""
    with Engine(folder) as engine:
        engine.cdi("4GiB", "--group", "lab", "--group-limit", "6GiB", "--state-dir", str(engine.state))
        one, two = engine.start("4GiB", name="one"), engine.start("4GiB", "--hostname", "web-7f", name="two")
        one.do("init context=0 alloc=4000m")
        two.do("init context=0 alloc=2000m")
        expect("more than the group", two("alloc=1000m"), REFUSED)
        rows = {row["container"]: row for row in engine.ps()["processes"]}
        expect_that(f"containers {rows}", "web-7f" in rows and len(rows) == 2 and None not in rows)
        row = rows["web-7f"]
        expect("the ID in the container", row["pid"], 1)
        here = pathlib.Path(f"/proc/{row['host_pid']}/cmdline").read_text()
        expect_that(f"the ID here: {here}", here.startswith("/build/steps"))
        table = subprocess.run([RATION, "ps"], env=engine.environment | {"RATION_STATE_DIR": str(engine.state), "COLUMNS": "200"},
                               capture_output=True, text=True, check=True).stdout
        expect_that(f"table {table}", re.search(rf"{row['host_pid']} +\S+ +web-7f .* steps", table))
        engine.kill("one")
        one.process.wait(timeout=HANG)
        two.do("alloc=1000m")
        engine.start("4GiB", name="three").do("init context=0 alloc=2500m")
        done = subprocess.run([RATION, "set", str(row["host_pid"]), "--limit", "3500MiB"], capture_output=True, text=True, check=False,
                              env=engine.environment | {"RATION_STATE_DIR": str(engine.state)})
        expect_that(f"set by the ID here: {done.stdout} {done.stderr}", done.returncode == 0)
        expect("it", two("alloc=700m"), REFUSED)


def enforced(folder):
    """An image that sets variables of its own has the limit all the same."""
    with Engine(folder) as engine:
        engine.cdi("25%", "--enforce", str(engine.folder / "enforced"), "--state-dir", str(engine.state))
        for flags in ([], ["-e", "LD_PRELOAD="], ["-e", "RATION_DISABLE=1"], ["-e", "RATION_CONTAINER_LIMIT=100%", "-e", "RATION_LIMIT=100%"],
                      ["-e", "RATION_STATE_DIR=/tmp", "-e", "RATION_GROUP=mine"]):
            done = engine.run("25pct", ["/build/steps", "init", "context=0", "query", "alloc=5000m", "alloc=4000m"], *flags)
            expect_that(f"{flags}: {done.stdout} {done.stderr}", f"total={4 * GIB} " in done.stdout and
                        "alloc=5000m: 2\nalloc=4000m: 0\n" in done.stdout)
        done = subprocess.run([RATION, "env", "--check", engine.folder / "enforced/25pct/config.json"], capture_output=True, text=True,
                              check=False)
        expect("its settings", (done.returncode, done.stderr), (0, ""))


in_own_namespace()
sys.argv.pop(1)
main({"unlike shares": unlike_shares, "processes of one container": processes_of_one_container, "a group of containers": group_of_containers,
      "enforced": enforced})
