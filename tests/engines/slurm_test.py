"""Slurm holds jobs to their shards: the plug-in and the TaskProlog of examples/slurm, under Slurm's own daemons."""
import atexit
import functools
import json
import os
import pathlib
import pwd
import re
import shlex
import shutil
import subprocess

import slurm_cluster
from engines import BUILD, EXAMPLES, GIB, MIB, SIMULATOR, expect, expect_that, main, needs, skip
from slurm_cluster import Task

DEVICE, SHARDS, KEPT = 16 * GIB, 4, 95  # as the README's files say: shards of a GPU, percent that the margin leaves
NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
GRANULE = 2 * MIB


@functools.cache
def cluster():
    made = slurm_cluster.Cluster()
    atexit.register(made.stop)
    made.start()
    return made


def share(shards):
    return DEVICE * KEPT * shards // (100 * SHARDS)


def plug_in(**settings):
    cluster().use_plug_in(" ".join(f"{name}={value}" for name, value in settings.items()))


def prolog(**settings):
    cluster().use_prolog(**settings)


class Job:
    """srun of one step, whose tasks make driver calls on request."""

    def __init__(self, folder, *options, tasks=1, **environment):
        self.slurm, self.folder = cluster(), pathlib.Path(folder)
        self.name = f"job{len(list(self.folder.glob('job*')))}"
        (self.folder / self.name).mkdir()
        self.tasks = [Task(self.folder / self.name, number) for number in range(tasks)]
        self.errors = open(self.folder / self.name / "errors", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "srun", "--quiet", f"--ntasks={tasks}", f"--job-name={self.name}",
             *options, "sh", "-c", Task.command(self.folder / self.name)],
            env=self.slurm.environment | environment, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors)

    def begun(self):
        for task in self.tasks:
            task.begun()
        return self

    @property
    def number(self):
        return self.slurm.call("squeue", "--noheader", "--format=%i", f"--name={self.name}").stdout.strip()

    def end(self):
        for task in self.tasks:
            task.end()
        expect("srun", (self.process.wait(slurm_cluster.HANG), self.said()), (0, ""))

    def said(self):
        self.errors.seek(0)
        return self.errors.read()


def check_has(task, total):
    """It sees its share as the whole device, can take all of it, and nothing beyond."""
    expect("free and total", task.figures(), (total, total))
    most = total // GRANULE * GRANULE
    expect(f"allocation of {most}", task.do(f"alloc={most}")[1], 0)
    expect("one more", task.do(f"alloc={GRANULE}")[1], NO_MEMORY)


def groups(user=0, command=("ration",)):
    """The limit and the number of processes of each of the user's groups, by name."""
    said = cluster().call(*command, "ps", "--json", RATION_STATE_DIR=f"{cluster().folder}/ration/{user}")
    return {group["name"]: (group["limit"], group["process_count"]) for group in json.loads(said.stdout)["groups"]}


def unlike_shares(folder):
    small, large = Job(folder, "--gres=shard:1").begun(), Job(folder, "--gres=shard:3").begun()
    expect_that("the sum fits", share(1) + share(3) < DEVICE)
    for job, shards in ((small, 1), (large, 3)):
        check_has(job.tasks[0], share(shards))
    names = [f"slurm-{job.number}.0" for job in (small, large)]
    seen = groups()
    expect("ration ps", [seen.get(name) for name in names], [(share(1), 1), (share(3), 1)])
    # No shard is left: the next one waits in Slurm's queue, and has the room of one that is killed.
    after = Job(folder, "--gres=shard:2")
    cluster().until(lambda: "PENDING" in cluster().squeue("%T"), "the third job waits")
    cluster().call("scancel", large.number)
    expect_that("srun of the killed job failed", large.process.wait(slurm_cluster.HANG) != 0)
    task = after.begun().tasks[0]
    # As with a real driver, a killed process's memory comes back a moment later; the simulated one notices in an
    # allocation.
    expect("first allocation", (task.do(f"alloc={GRANULE}")[1], task.do("free=0")[1]), (0, 0))
    cluster().until(lambda: task.figures()[0] == share(2), "the killed job's memory is back")
    check_has(task, share(2))
    small.end()
    after.end()


def two_tasks(folder):
    job = Job(folder, "--gres=shard:2", tasks=2).begun()
    first, second = job.tasks
    part = share(2) // 2
    expect("what the first sees", first.figures()[1], share(2))
    expect("more than its part and what is left", first.do(f"alloc={part + 16 * MIB}")[1], NO_MEMORY)
    for task in (first, second):
        expect("its part", task.do(f"alloc={part // GRANULE * GRANULE - GRANULE}")[1], 0)
    expect("one more", second.do(f"alloc={16 * MIB}")[1], NO_MEMORY)
    expect("processes of the group", groups()[f"slurm-{job.number}.0"][1], 2)
    first.do("free=1")
    # What one leaves is not the other's while it is guaranteed, and is when its task has ended.
    first.end()
    cluster().until(lambda: groups()[f"slurm-{job.number}.0"][1] == 1, "one task has ended")
    expect("the other's part", second.do(f"alloc={part // 2}")[1], 0)
    second.end()
    expect("srun", job.process.wait(slurm_cluster.HANG), 0)


def steps_of_a_script(folder):
    """The script's own process and its steps share what the job has; each step has its own part."""
    os.mkdir(own := pathlib.Path(folder) / "own")
    script = Task(own, "script")
    steps = {shards: Task(own, f"step{shards}") for shards in (1, 2)}
    started = [f"srun --exact --ntasks=1 --gres=shard:{shards} sh -c " +
               shlex.quote(Task.command(own, f"step{shards}")) + " &" for shards in steps]
    text = "\n".join([*started, f"({Task.command(own, 'script')})", "wait"])
    # From inside a step of another job, whose variables are not this one's.
    stale = {"SLURM_STEP_ID": "7", "RATION_GROUP_TREE": "0000000100000000=1GiB", "RATION_GROUP": "slurm-1.7"}
    done = cluster().call("sbatch", "--parsable", "--ntasks=3", f"--output={own}/output", "--gres=shard:3",
                          f"--wrap={text}", **stale)
    number = done.stdout.strip()
    for shards, task in steps.items():
        task.begun()
        expect(f"a step of {shards}", task.figures()[1], share(shards))
    script.begun()
    expect("the script", script.figures()[1], share(3))
    names = [f"{int(number):08}00000000", *(f"slurm-{number}.{step}" for step in ("0", "1", "batch"))]
    expect("groups", sorted(groups()), names)
    expect("two shards of three", script.do(f"alloc={share(2)}")[1], 0)
    expect("a step beyond what is left to the job", steps[2].do(f"alloc={share(2) // GRANULE * GRANULE}")[1], NO_MEMORY)
    expect("a step of what is left to the job", steps[1].do(f"alloc={share(1) // GRANULE * GRANULE - 8 * MIB}")[1], 0)
    for task in (*steps.values(), script):
        task.end()
    cluster().until(lambda: not cluster().squeue("%i"), "the job has ended")
    expect("the job's output", (own / "output").read_text(), "")


def steps_of_an_allocation(_):
    """A shell that salloc starts on the node, as a batch script."""
    names = "printenv RATION_GROUP RATION_GROUP_LIMIT RATION_GROUP_TREE"
    done = cluster().call("salloc", "--gres=shard:2", said=f"{names}\nsrun --exact --gres=shard:1 {names}\n")
    number = re.search(r"allocation (\d+)", done.stderr)[1]
    tree = f"{int(number):08}00000000=47.5%"
    said = re.sub(r"(\.\d*?)0+%", r"\1%", done.stdout)  # the TaskProlog writes all decimals
    wanted = [f"slurm-{number}.interactive", "47.5%", tree, f"slurm-{number}.0", "23.75%", tree]
    expect("groups and limits", said.split(), wanted)


VARIABLES = 'env | grep -E "^(LD_PRELOAD|RATION_)"; true'


def without_share(_):
    own = {"LD_PRELOAD": "libz.so.1", "RATION_LIMIT": "1GiB", "RATION_GROUP": "mine"}
    said = cluster().srun("sh", "-c", VARIABLES, **own).stdout.split()
    expect("the user's own variables", sorted(said), sorted(f"{name}={value}" for name, value in own.items()))
    step = f"srun --gres=none --ntasks=1 sh -c {shlex.quote(VARIABLES)}"
    _, said = cluster().batch(step, "--gres=shard:1", LD_PRELOAD="libz.so.1")
    expect("a step without a share of a job with one", said, "LD_PRELOAD=libz.so.1\n")


def own_variables(folder):
    """Whatever the user's variables say, the limit holds."""
    lifted = {"LD_PRELOAD": "libz.so.1", "RATION_DISABLE": "1", "RATION_LIMIT": "16GiB", "RATION_GROUP": "slurm-1.0",
              "RATION_GROUP_LIMIT": "16GiB", "RATION_STATE_DIR": f"{folder}/elsewhere", "RATION_MANAGED": "count",
              "RATION_GUARANTEE": "12GiB", "SLURM_SHARDS_ON_NODE": "4", "XLA_PYTHON_CLIENT_MEM_FRACTION": "2.0"}
    job = Job(folder, "--gres=shard:1", **lifted).begun()
    check_has(job.tasks[0], share(1))
    expect("managed memory beyond it", job.tasks[0].do(f"managed={GIB}")[1], NO_MEMORY)
    job.end()
    said = cluster().srun("--gres=shard:1", "printenv", "LD_PRELOAD", **lifted).stdout
    expect("LD_PRELOAD", said, f"{BUILD}/lib/libration.so:libz.so.1\n")


def check_refused(done, *words):
    said = done.stdout + done.stderr
    expect_that(f"refused: {said}", done.returncode != 0)
    for word in words:
        expect_that(f"{word!r} in {said}", word in said)
    expect_that(f"not started: {said}", "started\n" not in said.replace("is not started", ""))


def start(*options):
    """srun of a step that says that it has started."""
    return cluster().srun(*options, "echo", "started")


def no_library(_, use):
    missing = {"library": "/missing/libration.so"}
    use(**missing)
    check_refused(start("--gres=shard:1"), "is not started: the library", missing["library"])
    done, said = cluster().batch("echo started", "--gres=shard:1")
    expect_that(f"{done}: {said}", done.returncode != 0 and "batch is not started: the library" in said)
    expect_that(said, "started\n" not in said)
    expect("a step without a share", start().stdout, "started\n")


def too_many_shards(_):
    """Slurm itself refuses what no node has; a node with more shards than a GPU is refused by Ration."""
    check_refused(start("--gres=shard:6"), "Requested node configuration is not available")


def wrong_shards(_, use):
    use(shards=2)
    check_refused(start("--gres=shard:3"), "is not started: it has 3 shards", "which has 2")


def gpu_mem(folder):
    for option, total in (("1GiB", GIB), ("1536m", 1536 * MIB), ("0.125", 2 * GIB), ("10%", DEVICE // 10)):
        job = Job(folder, "--gres=shard:1", f"--gpu-mem={option}").begun()
        check_has(job.tasks[0], total)
        expect("ration ps", groups()[f"slurm-{job.number}.0"], (total, 1))
        job.end()
    job = Job(folder, "--gres=gpu:1", "--gpu-mem=12GiB").begun()
    check_has(job.tasks[0], 12 * GIB)
    job.end()
    job = Job(folder, "--gres=shard:1", "--gpu-mem=1GiB", tasks=2).begun()
    expect("beyond its part", job.tasks[0].do("alloc=600m")[1], NO_MEMORY)
    expect("parts of two tasks", [task.do("alloc=500m")[1] for task in job.tasks], [0, 0])
    job.end()


def gpu_mem_refused(_):
    for program in ("srun", "sbatch", "salloc"):
        command = ["--wrap=echo started"] if program == "sbatch" else ["echo", "started"]
        none = {"12x": '"x" is not a unit', "2": "that is 2 bytes", "0": "0 is not a usable size", "2.0": "a share of the device",
                "120%": "at most 100%", "2Gib": "likely meant: 2GiB", "5.": "a digit must follow", "": "it is empty"}
        for size, why in none.items():
            done = cluster().call(program, "--gres=shard:1", f"--gpu-mem={size}", *command)
            check_refused(done, f"--gpu-mem={size}: ", why)
        done = cluster().call(program, "--gres=shard:1", "--gpu-mem=17GiB", *command)
        check_refused(done, "--gpu-mem=17GiB is more than the 16384 MiB of a GPU")
        help_text = cluster().call(program, "--help").stdout
        expect_that(f"help of {program}", "--gpu-mem=SIZE" in help_text)
    for size in ("8GiB", "24%"):
        check_refused(start("--gres=shard:1", f"--gpu-mem={size}"),
                      f"is not started: --gpu-mem={size} is more than its 1 of 4 shards, 23.75% of a GPU")
    # What a job asks for, a step of it with fewer shards does not exceed.
    step = "srun --ntasks=1 --gres=shard:1 printenv RATION_GROUP_LIMIT"
    _, said = cluster().batch(step, "--gres=shard:3", "--gpu-mem=8GiB")
    expect("limit of a step", said, "23.75%\n")
    cluster().use_plug_in(line=f"required {slurm_cluster.PLUG_IN} shards=4")
    check_refused(start("--gres=shard:1", "--gpu-mem=1GiB"), "does not say how much memory a GPU has")


def wrong_arguments(_):
    for argument, why in {"shards=0": "how many shards", "margin=x": "percentage", "memory=16": "likely meant: 16MiB or 16GiB",
                          "shard=4": "known are", "guarantee=no": "or guarantee=none", "state=here": "begins with /"}.items():
        cluster().use_plug_in(argument)
        check_refused(start("--gres=shard:1"), f"'{argument}' in plugstack.conf", why)
        expect("a step without a share", start().stdout, "started\n")


def other_arguments(_):
    """A node whose arguments are not those of the login node."""
    out = cluster().folder / "ration/held"
    done = cluster().call("sbatch", "--parsable", "--hold", f"--output={out}", "--gres=gpu:1", "--gpu-mem=12GiB",
                          "--wrap=echo started")
    plug_in(memory="8GiB", guarantee="none")
    cluster().call("scontrol", "release", done.stdout.strip())
    cluster().until(lambda: not cluster().squeue("%i"), "the job has ended")
    said = out.read_text()
    expect_that(f"refused: {said}", "is not started: --gpu-mem=12GiB is more than the 8192 MiB of a GPU" in said)
    done = cluster().srun("--gres=shard:1", "--ntasks=2", "printenv", "RATION_GUARANTEE", RATION_GUARANTEE="1GiB")
    expect("a guarantee of each task", done.stdout, "")


def readme(folder):
    """Its commands say what it shows; numbers of jobs, the node's name, and a wait for the job before it apart."""
    text = (EXAMPLES / "slurm/README.md").read_text()
    shown = re.search(r"^```console\n(.*?)^```$", text, re.M | re.S)[1]
    (pathlib.Path(folder) / "server").symlink_to(BUILD / "examples/two_servers/server")
    (pathlib.Path(folder) / "job.sh").write_text("#!/bin/sh\n")
    for part in re.split(r"^\$ ", shown, flags=re.M)[1:]:
        command, _, wanted = part.partition("\n")
        said = subprocess.run(["sh", "-c", command], cwd=folder, env=cluster().environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=slurm_cluster.HANG, check=False).stdout
        said = re.sub(r"^srun: job \d+ (queued|has been allocated).*\n", "", said, flags=re.M)
        said = re.sub(r"(slurm-|step )\d+\.", r"\g<1>7.", said)
        said = said.replace(f"slurmstepd-{slurm_cluster.HOST}:", "slurmstepd-gpu01:")
        expect(command, said, wanted)


def optional(_):
    """Slurm ignores the failure of an optional plug-in; this one stops the task itself."""
    cluster().use_plug_in(line=f"optional {slurm_cluster.PLUG_IN} shards=4 library=/missing.so")
    check_refused(start("--gres=shard:1"), "'/missing.so' (library= in plugstack.conf) cannot be preloaded: No such")
    script = EXAMPLES / "slurm/task_prolog.sh"
    cluster().use_plug_in(line=f"optional {slurm_cluster.PLUG_IN} shards=4 library={script}")
    check_refused(start("--gres=shard:1"), "it is not a library of this machine")


def another_user(folder, use):
    """Two users on one device, each with ledgers of its own."""
    place = pathlib.Path(folder)
    place.chmod(0o755)
    for source in (BUILD / "lib/libration.so", BUILD / "lib/libration-core.so"):
        shutil.copy(source, place)
    shutil.copytree(SIMULATOR, place / "sim", symlinks=True)
    for program in (BUILD / "tests/preload/programs/steps", BUILD / "bin/ration"):
        shutil.copy(program, place)
    use(library=place / "libration.so")
    os.mkdir(own := place / "own")
    theirs = Task(own, "0")
    environment = {"STEPS": str(place / "steps"), "LD_LIBRARY_PATH": str(place / "sim")}
    mine = Job(folder, "--gres=shard:3", **environment).begun()
    (cluster().folder / "machine/machine").chmod(0o666)  # the simulated device is of every user, as a real one
    done = cluster().call("sbatch", "--parsable", "--uid=nobody", "--chdir=/", "--output=/dev/null", "--gres=shard:1",
                          f"--wrap=({Task.command(own, '0')})", **environment)
    expect("sbatch", done.stderr, "")
    theirs.begun()
    for task, shards in ((theirs, 1), (mine.tasks[0], 3)):
        check_has(task, share(shards))
    other = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", place / "ration")
    seen = groups(pwd.getpwnam("nobody").pw_uid, other)
    expect("groups of the other", seen[f"slurm-{done.stdout.strip()}.batch"], (share(1), 1))
    theirs.end()
    mine.end()


def case(test, use=plug_in, **settings):
    def run(folder):
        pathlib.Path(folder).chmod(0o755)
        use(**settings)
        try:
            test(folder)
        finally:
            cluster().clear()
    return run


def both(name, test, hands_over=False):
    ways = {"plug-in": plug_in, "TaskProlog": prolog}
    return {f"{way}: {name}": case(functools.partial(test, use=use) if hands_over else test, use)
            for way, use in ways.items()}


if not os.environ.get("PRELOAD_LIST"):
    for program, package in (("srun", "slurm-wlm"), ("slurmd", "slurmd"), ("munged", "munge")):
        needs(program, package)
    if os.geteuid() != 0:
        skip("slurmd starts jobs as root")
    if not slurm_cluster.PLUG_IN.exists():
        skip("the plug-in was not built: slurm/spank.h was missing (libslurm-dev) when cmake ran")
    slurm_cluster.enter_pid_namespace()

main(both("two jobs of unlike shares have each its own, and a killed one's room is the next one's", unlike_shares) |
     both("two tasks of a job share, each with its part", two_tasks) |
     both("a batch script and its steps share what the job has", steps_of_a_script) |
     both("a shell of salloc and its steps share what the job has", steps_of_an_allocation) |
     both("a step without a share has no library and no variable", without_share) |
     both("variables of the user do not lift the limit", own_variables) |
     both("more shards than a node has are refused", too_many_shards) |
     both("more shards than a GPU has are refused", wrong_shards, True) |
     both("jobs of two users have each its own", another_user, True) |
     both("without the library no job", no_library, True) | {
         "plug-in: --gpu-mem is the limit": case(gpu_mem),
         "plug-in: too much for --gpu-mem is refused": case(gpu_mem_refused),
         "plug-in: wrong arguments start no job with a share": case(wrong_arguments),
         "plug-in: arguments of the node decide": case(other_arguments),
         "plug-in: commands of the README": case(readme),
         "plug-in: fails closed where it is optional": case(optional),
     })
