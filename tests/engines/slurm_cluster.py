"""Slurm's own daemons on loopback, with a private munge. What it starts ends with it."""
import contextlib
import ctypes
import os
import pathlib
import random
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

from engines import BUILD, EXAMPLES, HANG, Failure, simulated

HOST = socket.gethostname().partition(".")[0]
PLUG_IN = BUILD / "lib/ration/slurm/spank_ration.so"
# What the README does not set: everything private, on loopback, as root, without cgroups.
COMMON_SETTINGS = """\
ClusterName=ration
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
TCPTimeout=60
MessageTimeout=60
"""
SETTINGS = COMMON_SETTINGS + """\
SlurmdPidFile={folder}/slurmd.pid
PlugStackConfig={folder}/plugstack.conf
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=1
KillWait=1
PartitionName=gpu Nodes=ALL Default=YES
TaskProlog={folder}/task_prolog.sh
LaunchParameters=use_interactive_step
InteractiveStepOptions="--interactive --preserve-env /bin/sh"
"""


def enter_pid_namespace():
    """Where that is possible, runs this script again as the first process of a namespace, with which all that Slurm
    starts ends, even if the script is killed."""
    unshare = ["unshare", "--fork", "--pid", "--kill-child", "--mount-proc"]
    if os.getpid() != 1 and subprocess.run([*unshare, "true"], check=False).returncode == 0:
        os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def readme_file(name):
    """The file of that name in examples/slurm/README.md."""
    text = (EXAMPLES / "slurm/README.md").read_text()
    return re.search(rf"^`{re.escape(name)}`(?:.+\n)+\n```\w+\n((?:.*\n)*?)```$", text, re.M)[1]


def free_ports(count):
    """Below those that the kernel gives to connections of others."""
    ports = set()
    while len(ports) < count:
        with socket.socket() as probe, contextlib.suppress(OSError):
            port = random.randrange(10000, 32000)
            probe.bind(("127.0.0.1", port))
            ports.add(port)
    return list(ports)


class Daemon:
    """A process that logs to its output, and dies with the test."""

    def __init__(self, *command, **environment):
        self.lines = []
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True, env=environment)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.lines.append("(ended)")
            self.changed.notify_all()

    def expect_line(self, text):
        said = lambda: any(text in line or line == "(ended)" for line in self.lines)  # noqa: E731
        with self.changed:
            if not self.changed.wait_for(said, HANG) or not any(text in line for line in self.lines):
                raise Failure(f"{self.process.args[3]} does not say {text!r}: {''.join(self.lines)}")


class Cluster:
    def __init__(self):
        # PR_SET_CHILD_SUBREAPER: what a daemon leaves behind becomes ours to end.
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        self.scratch = tempfile.TemporaryDirectory(prefix="ration-slurm-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self.scratch.name)
        self.folder.chmod(0o755)
        for name in ("state", "spool", "ration"):
            (self.folder / name).mkdir()
        (self.folder / "ration").chmod(0o1777)  # each user makes a state folder of its own
        self.environment = simulated(self.folder) | {"SLURM_CONF": str(self.folder / "slurm.conf"),
                                                     "STEPS": str(BUILD / "tests/preload/programs/steps")}
        (self.folder / "machine").chmod(0o1777)
        del self.environment["RATION_STATE_DIR"]
        self.write_settings()
        self.daemons = []

    def write_settings(self):
        device = self.folder / "nvidia0"
        # gres.conf wants a device node: that of /dev/null serves.
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        node = f"NodeName={HOST} NodeAddr=127.0.0.1 State=UNKNOWN"
        (self.folder / "slurm.conf").write_text(readme_file("slurm.conf").replace("NodeName=gpu01", node) +
                                                SETTINGS.format(host=HOST, folder=self.folder, ports=free_ports(2)))
        (self.folder / "gres.conf").write_text(readme_file("gres.conf").replace("/dev/nvidia0", str(device)))
        self.use_plug_in()

    def use_plug_in(self, arguments="", line=None):
        """For the jobs from here on; later arguments win over those of the README."""
        line = line or readme_file("plugstack.conf").strip().replace("/opt/ration", str(BUILD))
        (self.folder / "plugstack.conf").write_text(f"{line} state={self.folder}/ration/%u {arguments}\n")
        self.write_prolog("#!/bin/sh\n")

    def use_prolog(self, **settings):
        text = (EXAMPLES / "slurm/task_prolog.sh").read_text()
        ours = {"library": BUILD / "lib/libration.so", "state": f"{self.folder}/ration/$(id -u)"}
        for name, value in (ours | settings).items():
            text, count = re.subn(rf"^{name}=\S*", f"{name}={value}", text, flags=re.M)
            assert count == 1, name
        (self.folder / "plugstack.conf").write_text("")
        self.write_prolog(text)

    def write_prolog(self, text):
        path = self.folder / "task_prolog.sh"
        path.write_text(text)
        path.chmod(0o755)

    def start_munge(self):
        own = self.folder
        (own / "munge.key").write_bytes(os.urandom(128))
        (own / "munge.key").chmod(0o400)
        names = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        files = [f"--{option}={own}/munge.{name}" for option, name in names.items()]
        munged = Daemon("munged", "--foreground", *files, **os.environ)
        self.daemons.append(munged)
        munged.expect_line("work threads")

    def start(self):
        self.start_munge()
        for name, started in (("slurmctld", "Running as primary controller"), ("slurmd", "slurmd started on")):
            self.daemons.append(Daemon(name, "-D", "-f", self.folder / "slurm.conf", **self.environment))
            self.daemons[-1].expect_line(started)
        self.until(lambda: self.call("sinfo", "--noheader", "--format=%T").stdout.strip() == "idle", "the node is idle")

    def until(self, holds, what):
        """Asks Slurm again and again."""
        end = time.monotonic() + HANG
        while not holds():
            if time.monotonic() > end:
                logs = "".join(line for daemon in self.daemons for line in daemon.lines[-20:])
                raise Failure(f"not within {HANG} s: {what}\n{logs}")

    def call(self, *command, said=None, **environment):
        """`said`: on standard input."""
        return subprocess.run(
            [str(word) for word in command], env=self.environment | environment, cwd=self.folder, timeout=HANG,
            input=said or "", capture_output=True, text=True, check=False)

    def srun(self, *arguments, **environment):
        return self.call("srun", "--quiet", *arguments, **environment)

    def batch(self, script, *options, **environment):
        """Runs a batch script to its end: its output, and sbatch's own."""
        out = self.folder / "ration" / f"batch.{time.monotonic_ns()}"
        done = self.call("sbatch", "--wait", f"--output={out}", *options, f"--wrap={script}", **environment)
        return done, out.read_text() if out.exists() else ""

    def squeue(self, what):
        return self.call("squeue", "--noheader", f"--format={what}").stdout.split()

    def clear(self):
        """Ends all jobs."""
        self.call("scancel", "--user=root", "--signal=KILL", "--full")
        self.call("scancel", "--user=root")
        self.call("scancel", "--user=nobody")
        self.until(lambda: not self.squeue("%i"), "all jobs have ended")

    def stop(self):
        """Whatever has happened: first the jobs, if Slurm still can, then every descendant."""
        try:
            if len(self.daemons) == 3:  # there is a slurmd
                self.clear()
        finally:
            for daemon in reversed(self.daemons):
                daemon.process.terminate()
                try:
                    daemon.process.wait(HANG)
                except subprocess.TimeoutExpired:
                    daemon.process.kill()
                    daemon.process.wait()
            while children := pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                for child in children:
                    try:
                        os.kill(int(child), signal.SIGKILL)
                        os.waitpid(int(child), 0)
                    except (ProcessLookupError, ChildProcessError):
                        pass
            self.scratch.cleanup()


class Task:
    """One task of a job that makes driver calls on request. `command` is the shell's, and runs it in the job."""

    def __init__(self, folder, number):
        self.files, self.said = {}, b""
        for way in ("in", "out"):
            path = pathlib.Path(folder) / f"{way}.{number}"
            os.mkfifo(path)
            path.chmod(0o666)
            self.files[way] = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # never blocks (fifo(7))

    @staticmethod
    def command(folder, number="$SLURM_PROCID"):
        return f'exec "$STEPS" init context=0 obey <"{folder}/in.{number}" >"{folder}/out.{number}"'

    def begun(self):
        """Waits for its context."""
        return self.answer("context=0")

    def do(self, step):
        """Makes the call: what it said, and its code."""
        os.write(self.files["in"], f"{step}\n".encode())
        return self.answer(step)

    def answer(self, step):
        while True:
            line, newline, rest = self.said.partition(b"\n")
            if newline:
                self.said = rest
                if match := re.search(rf"(?:^|(.*) ){re.escape(step)}: (\d+)$", line.decode()):
                    return match[1] or "", int(match[2])
            elif select.select([self.files["out"]], [], [], HANG)[0]:
                self.said += os.read(self.files["out"], 4096)
            else:
                raise Failure(f"a task does not answer to {step}: {self.said!r}")

    def figures(self):
        return tuple(map(int, re.findall(r"=(\d+)", self.do("query")[0])))  # free, total

    def end(self):
        os.write(self.files["in"], b"\n")
        self.answer("obey")
        self.close()

    def close(self):
        for file in self.files.values():
            os.close(file)
        self.files = {}
