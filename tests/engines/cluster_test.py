#!/usr/bin/env python3
"""Beyond one machine: Slurm's own controller places the jobs of a day on many simulated nodes, and each node is then played over
the simulated driver, without Ration and with the limits that examples/slurm sets. cluster_test.py NODES

The nodes are powered down to Slurm (State=CLOUD), so it places jobs on them, by shards, and starts none: each job of its placement
is a process here. Every job needs less than its shards. One of eight is careless, as many frameworks are: it takes most of what the
device has free. A job is lost to its neighbours if it is refused what is within its shards."""
import concurrent.futures
import os
import pathlib
import random
import stat
import statistics
import sys
import tempfile
import time

from engines import BUILD, GIB, LIBRARY, MIB, expect, expect_that, main, needs, simulated, skip
from slurm_cluster import COMMON_SETTINGS, HOST, Cluster, Daemon, enter_pid_namespace, free_ports

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload/group"))
from members import Member  # noqa: E402

NODES = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
JOBS = 8  # a node, on average
SHARDS = 16  # of a GPU
DEVICE = 16 * GIB
CONTEXT = 64 * MIB
MARGIN = 0.07  # for a context of each of 16 jobs; examples/slurm says 5 %, which is enough for 12
CARELESS = 8  # one of so many
AT_ONCE = 2  # nodes
SHARES = {1: 0.40, 2: 0.35, 3: 0.15, 4: 0.10}  # of the jobs
SETTINGS = COMMON_SETTINGS + """\
GresTypes=gpu,shard
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmctldParameters=cloud_dns
ResumeProgram=/bin/true
SuspendProgram=/bin/true
ResumeTimeout=36000
ResumeRate=0
SchedulerType=sched/builtin
SchedulerParameters=sched_min_interval=1,sched_interval=1,default_queue_depth=100000,max_sched_time=30
MaxJobCount=100000
MaxArraySize=50001
NodeName=n[1-{nodes}] CPUs={shards} Gres=gpu:1,shard:{shards} State=CLOUD
PartitionName=gpu Nodes=ALL Default=YES
"""


class Controller(Cluster):
    """slurmctld alone, over nodes that it believes to be powered down."""

    def write_settings(self):
        device = self.folder / "nvidia0"
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (self.folder / "slurm.conf").write_text(
            SETTINGS.format(host=HOST, folder=self.folder, ports=free_ports(2), nodes=NODES, shards=SHARDS))
        (self.folder / "gres.conf").write_text(f"NodeName=n[1-{NODES}] Name=gpu File={device}\nNodeName=n[1-{NODES}] Name=shard "
                                               f"Count={SHARDS}\n")

    def start(self):
        self.start_munge()
        self.daemons.append(Daemon("slurmctld", "-D", "-f", self.folder / "slurm.conf", **self.environment))
        self.daemons[-1].expect_line("Running as primary controller")

    def placement(self, chance):
        """{node: [shards of each job]}, once as many as possible are placed."""
        for shards, part in chance.sample(sorted(SHARES.items()), len(SHARES)):
            done = self.call("sbatch", f"--array=1-{round(NODES * JOBS * part)}", f"--gres=shard:{shards}", "--wrap=true")
            expect(f"sbatch: {done.stderr}", done.returncode, 0)
        placed, seen_ns = None, time.monotonic_ns()
        while time.monotonic_ns() - seen_ns < 10_000_000_000:  # Slurm does not say when it has no room for any other
            now = self.call("squeue", "--noheader", "--array", "--states=CONFIGURING", "--format=%N %b").stdout.split("\n")
            if len(now) != placed:
                placed, seen_ns = len(now), time.monotonic_ns()
        nodes = {}
        for line in filter(None, now):
            node, shards = line.split()
            nodes.setdefault(node, []).append(int(shards.rpartition(":")[2]))
        return nodes


class Job:
    """One process. Its need is within its shards; a careless one takes what it sees."""

    def __init__(self, shards, chance, environment, folder):
        share = DEVICE * shards // SHARDS
        self.careless = chance.randrange(CARELESS) == 0
        need = int((share - CONTEXT) * (1 - MARGIN) * chance.uniform(0.5, 0.95))
        self.steps = [max(1, need // 4 // MIB)] * 4
        begun = time.monotonic()
        self.member = Member([BUILD / "tests/preload/programs/steps", "obey"], environment, folder)
        self.lost = self.member("init") != 0 or self.member("context=0") != 0
        self.start_s = time.monotonic() - begun

    def go_on(self):
        """One allocation. False: it has all that it needs, or is lost."""
        if self.lost or not self.steps:
            return False
        if self.careless:
            free, _ = self.member.memory()
            self.steps = []
            self.member(f"alloc={free * 9 // 10 // MIB}m")  # what it gets is its own affair
            return False
        self.lost = self.member(f"alloc={self.steps.pop()}m") != 0
        return True


def play(shares, seed, limited):
    """One node: its jobs start in turn, and allocate in any order. (lost jobs, how long each start took)"""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="ration-node-") as name:
        folder = pathlib.Path(name)
        bare = simulated(folder, devices=str(DEVICE), SIMCUDA_CONTEXT_BYTES=str(CONTEXT))
        jobs = []
        try:
            for shards in shares:
                limit = f"{100 * shards / SHARDS * (1 - MARGIN):.4f}%"
                limits = {"LD_PRELOAD": str(LIBRARY), "RATION_LIMIT": limit, "RATION_GROUP": f"slurm-{len(jobs)}",
                          "RATION_GROUP_LIMIT": limit, "RATION_GUARANTEE": limit}
                jobs.append(Job(shards, chance, bare | (limits if limited else {}), folder))
                if chance.random() < 0.5:
                    jobs[-1].go_on()
            while left := [job for job in jobs if job.steps and not job.lost]:
                chance.choice(left).go_on()
            return sum(job.lost for job in jobs), [job.start_s for job in jobs]
        finally:
            for job in jobs:
                job.member.process.kill()
                job.member.process.wait()
                job.member.process.stdin.close()
                job.member.process.stdout.close()


def nodes_of_a_cluster(_):
    seed = int.from_bytes(os.urandom(4), "big")
    print("seed", seed)
    controller = Controller()
    try:
        controller.start()
        nodes = controller.placement(random.Random(seed))
    finally:
        controller.stop()
    jobs = sum(len(shares) for shares in nodes.values())
    expect_that(f"Slurm placed {jobs} jobs on {len(nodes)} nodes", len(nodes) > 0.9 * NODES and jobs > 0.9 * NODES * JOBS)
    expect_that("never more than a node has", all(sum(shares) <= SHARDS for shares in nodes.values()))
    lost, starts = {False: 0, True: 0}, {False: [], True: []}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        ways = [(shares, f"{seed} {node}", limited) for node, shares in nodes.items() for limited in (False, True)]
        for (_, _, limited), (count, times) in zip(ways, pool.map(lambda way: play(*way), ways)):
            lost[limited] += count
            starts[limited] += times
    medians = {limited: statistics.median(times) * 1000 for limited, times in starts.items()}
    print(f"{jobs} jobs on {len(nodes)} nodes: lost to neighbours {lost[False]} without Ration, {lost[True]} with it; "
          f"a start took {medians[False]:.1f} ms, and {medians[True] - medians[False]:.1f} ms more with it")
    expect_that(f"without limits jobs are lost: {lost[False]}", lost[False] > 0)
    expect("lost with them", lost[True], 0)


needs("slurmctld", "slurm-wlm")
needs("munged", "munge")
if os.geteuid() != 0:
    skip("slurmctld, with a private munge, needs root here")
enter_pid_namespace()
main({"nodes of a cluster": nodes_of_a_cluster})
