#!/usr/bin/env python3
"""Installs what dist/ holds into root folders of other distributions and machines: installed_test.py SOURCE PLACE

PLACE: debian11, debian12 (the wheel), debian11_from_host (the host's wheel, seen in a container), debian12_deb (the Debian
package), image (the archive, in an image that Podman builds), aarch64 (its wheel, under qemu). A root folder is made once, below
build/roots. Exit status 77, with a line, where a tool or a right is missing.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
PLACE = sys.argv[2]
DIST = SOURCE / "dist"
ROOTS = SOURCE / "build" / "roots"
HERE = pathlib.Path(__file__).parent
PACKAGES = "python3,python3-venv"
# Of a purged package nothing stays but what dpkg itself keeps.
DPKG_STATE = ("var/lib/dpkg", "var/log", "var/cache", "var/lib/apt", "proc", "tmp", "dev")


class Failed(Exception):
    pass


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {seen!r}, expected {wanted!r}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def mirror():
    """Where this machine's own packages come from."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"], capture_output=True, text=True,
                          check=True)
    return done.stdout.split("\n", 1)[0]


def bootstrap(suite, *options):
    """A root folder, made whole or not at all."""
    root = ROOTS / "-".join([suite, *(option.partition("=")[2] for option in options if "=" in option)])
    if root.is_dir():
        return root
    ROOTS.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=ROOTS))
    done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", *options, suite, made, mirror()],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(made)
        raise Failed(f"debootstrap {suite}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    made.chmod(0o755)
    made.rename(root)
    return root


class Root:
    """A copy of a root folder, in which commands run."""

    def __init__(self, folder, root, enter):
        self.path = pathlib.Path(folder) / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", root, self.path], check=True)
        self.enter = [str(word).replace("ROOT", str(self.path)) for word in enter]
        shutil.copy(HERE / "take.py", self.path)

    def run(self, *words, status=0):
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        done = subprocess.run([*self.enter, *map(str, words)], env=environment, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=900)
        if done.returncode != status:
            raise Failed(f"{words}: status {done.returncode}, expected {status}: {done.stdout[-1000:]}{done.stderr[-3000:]}")
        return done

    def bring(self, name):
        found = list(DIST.glob(name))
        expect(f"dist/{name}: files", len(found), 1)
        shutil.copy(found[0], self.path)
        return "/" + found[0].name

    def files(self):
        names = set()
        for folder, folders, files in os.walk(self.path):
            inner = os.path.relpath(folder, self.path)
            folders[:] = [each for each in folders if os.path.normpath(os.path.join(inner, each)) not in DPKG_STATE]
            names.update(os.path.normpath(os.path.join(inner, each)) for each in [*folders, *files])
        return names


def holds(root, ration, python="python3"):
    """A limit, a group of two, a log, and what the command says of itself."""
    version = root.run(ration, "--version").stdout
    expect("version", version.split()[:1], ["ration"])
    sim = ("--sim", "8GiB")
    expect("a limit", root.run(ration, "run", *sim, "--limit", "25%", "--", python, "/take.py").stdout, "32 2\n")
    expect("no limit", root.run(ration, "run", *sim, "--", python, "/take.py").stdout.split()[1], "2")
    # The first takes half of the group's 2 GiB and holds them, by its own limit; the second gets the other half.
    both = (f"mkfifo /tmp/end; {ration} run --limit 1GiB -- {python} /take.py 64 /tmp/end >/tmp/first & "
            "until [ -s /tmp/first ]; do :; done; "
            f"{python} /take.py; >/tmp/end; wait; cat /tmp/first; rm /tmp/end /tmp/first")
    expect("a group of two", root.run(ration, "run", *sim, "--group", "two", "--group-limit", "2GiB", "--", "sh", "-c", both).stdout,
           "16 2\n16 2\n")
    root.run(ration, "run", *sim, "--limit", "25%", "--log", "/tmp/run.jsonl", "--", python, "/take.py")
    lines = [json.loads(line) for line in (root.path / "tmp/run.jsonl").read_text().splitlines()]
    expect("the log", [sum(line["t"] == kind for line in lines) for kind in ("meta", "alloc", "oom", "end")], [1, 32, 1, 1])
    report = json.loads(root.run(ration, "report", "--json", "/tmp/run.jsonl").stdout)
    expect("its report", (report["allocs"], report["peak_bytes"]), (32, 2 << 30))
    (root.path / "tmp/run.jsonl").unlink()


def wheel(root, machine, environment="/venv", on_host=None):
    on_host = pathlib.Path(on_host or f"{root.path}{environment}")
    name = root.bring(f"ration_gpu-*_{machine}.whl")
    root.run("python3", "-m", "venv", environment)
    before = {path for path in on_host.rglob("*") if path.is_file()}
    root.run(f"{environment}/bin/pip", "install", "--no-index", name)
    holds(root, f"{environment}/bin/ration")
    code = ("import subprocess, ration_gpu; print(ration_gpu.command(), flush=True); "
            "subprocess.run(['python3', '/take.py'], env=ration_gpu.limit_environment('1GiB', sim='4GiB'), check=True)")
    expect("ration_gpu", root.run(f"{environment}/bin/python", "-c", code).stdout, f"{environment}/bin/ration\n16 2\n")
    root.run(f"{environment}/bin/pip", "uninstall", "-y", "ration-gpu")
    left = {path for path in on_host.rglob("*") if path.is_file() and path.suffix != ".pyc"} - before
    expect("left", left, set())


def debian(folder, suite):
    if os.geteuid() != 0:
        skip("not root: a change of the root folder needs it")
    return Root(folder, bootstrap(suite), ["unshare", "--mount", "sh", "-c",
                                           'mount --rbind /proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"', "ROOT"])


def debian11(folder):
    wheel(debian(folder, "bullseye"), "x86_64")


def debian11_from_host(folder):
    """The host's `ration` starts a program in a container of another C library, which sees the wheel at the same path."""
    root = debian(folder, "bullseye")
    shared = pathlib.Path(folder) / "shared"
    subprocess.run([sys.executable, "-m", "venv", shared / "venv"], check=True)
    subprocess.run([shared / "venv/bin/pip", "--quiet", "--disable-pip-version-check", "install", "--no-index",
                    *DIST.glob("ration_gpu-*_x86_64.whl")], check=True)
    inside = f"{root.path}{shared}"
    os.makedirs(inside)
    container = ["unshare", "--mount", "sh", "-c", f'mount --bind {shared} {inside}; exec chroot "$0" "$@"', root.path, "python3", "/take.py"]
    done = subprocess.run([shared / "venv/bin/ration", "run", "--sim", "8GiB", "--limit", "25%", "--log", shared / "run.jsonl", "--",
                           *container], env={"PATH": os.environ["PATH"], "TMPDIR": str(shared)}, capture_output=True, text=True, check=False)
    expect(f"a limit, stderr {done.stderr!r}", done.stdout, "32 2\n")
    expect("its log", sum('"t":"alloc"' in line for line in (shared / "run.jsonl").read_text().splitlines()), 32)


def debian12(folder):
    wheel(debian(folder, "bookworm"), "x86_64")


def debian12_deb(folder):
    root = debian(folder, "bookworm")
    name = root.bring("ration_*_amd64.deb")
    before = root.files()
    root.run("dpkg", "-i", name)
    expect("preloaded by itself", (root.path / "etc/ld.so.preload").exists(), False)
    holds(root, "ration")
    expect("its library", root.run("ration", "run", "--sim", "1GiB", "--", "sh", "-c", "echo $LD_PRELOAD").stdout,
           "/usr/lib/ration/libration.so\n")
    root.run("dpkg", "--purge", "ration")
    expect("left after a purge", root.files() ^ before, set())
    lintian = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", root.path / name[1:]], capture_output=True, text=True,
                             check=False)
    expect("lintian", (lintian.returncode, lintian.stdout), (0, ""))


# Podman, apart from this machine's: with a /run of its own, and one hierarchy of cgroups, as crun wants it.
PODMAN = """mount -t tmpfs tmpfs /run || exit 77
awk '$3 == "cgroup2" && $2 != "/sys/fs/cgroup" { print $2 }' /proc/mounts | xargs -r umount
exec podman --root "$0/store" --runroot "$0/runroot" --storage-driver vfs --runtime crun --cgroup-manager cgroupfs "$@"
"""


def image(folder):
    """Every program of an image that examples/containers/Dockerfile makes is limited, also one that drops its environment."""
    if os.geteuid() != 0:
        skip("not root: rootless Podman needs subordinate user IDs, which this user may not have")
    root = bootstrap("bookworm")

    def podman(*words, content=subprocess.DEVNULL):
        apart = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"]
        done = subprocess.run([*apart, "sh", "-c", PODMAN, folder, *map(str, words)], stdin=content, capture_output=True, text=True,
                              check=False, timeout=900)
        if done.returncode == 77:
            skip("a container may not mount")
        expect(f"{words[:2]}: status, {done.stderr[-3000:]!r}", done.returncode, 0)
        return done.stdout

    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as base:
        podman("import", "-", "debian:12", content=base.stdout)
    podman("build", "--pull=never", "--isolation=chroot", "-f", SOURCE / "examples/containers/Dockerfile", "-t", "limited", DIST)
    alone = ["--rm", "--pull=never", "--network=none", "--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1000:1000",
             "-v", f"{HERE / 'take.py'}:/take.py:ro"]
    simulated = ["LD_LIBRARY_PATH=/opt/ration/lib/ration/sim", "SIMCUDA_DEVICES=8GiB"]
    given = [word for each in (*simulated, "RATION_LIMIT=25%") for word in ("-e", each)]
    expect("a limit", podman("run", *alone, *given, "limited", "python3", "/take.py"), "32 2\n")
    bare = ["env", "-i", *simulated, "RATION_LIMIT=1GiB", "/usr/bin/python3", "/take.py"]
    expect("without the image's environment", podman("run", *alone, "limited", *bare), "16 2\n")
    expect("the command", podman("run", *alone, "limited", "ration", "--version").split()[:1], ["ration"])


def aarch64(folder):
    """No second stage of debootstrap: the unpacked packages are enough for Python."""
    root = bootstrap("bookworm", "--foreign", "--arch=arm64")
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)
        package.unlink()
    # proot translates no path of faccessat2, so what is asked for access has the same path inside and outside.
    environment = f"{folder}/venv"
    enter = ["proot", "-q", "qemu-aarch64", "-r", "ROOT", "-b", "/dev", "-b", "/proc", "-b", folder, "-w", "/"]
    wheel(Root(folder, root, enter), "aarch64", environment, environment)


PLACES = {each.__name__: (each, tools) for each, tools in
          ((debian11, ["debootstrap"]), (debian11_from_host, ["debootstrap"]), (debian12, ["debootstrap"]),
           (debian12_deb, ["debootstrap", "lintian"]), (image, ["debootstrap", "podman", "crun"]),
           (aarch64, ["debootstrap", "proot", "qemu-aarch64"]))}


def main():
    place, tools = PLACES[PLACE]
    missing = [tool for tool in tools if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
    if missing:
        skip(f"not installed: {', '.join(missing)} (scripts/setup.sh --packages --engines)")
    with tempfile.TemporaryDirectory() as folder:
        try:
            place(folder)
        except Failed as failed:
            print(f"FAILED  {PLACE}: {failed}")
            return 1
    print(f"ok      {PLACE}")
    return 0


sys.exit(main())
