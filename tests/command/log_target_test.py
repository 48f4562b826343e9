#!/usr/bin/env python3
"""What `ration run --log` says before anything starts: no log on stdout, no log over another, none where none can be written. A
log that a variable asks for is told and does without, because logging fails open."""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess

from harness import BUILD, HANG, PROGRAMS, command_environment, expect, expect_that, main, read_log, run

RATION = BUILD / "bin/ration"
COUNTED = PROGRAMS / "counted"
STARTED = "started"
NEW = "a name with %p is new for each process"
OVERWRITES = f"; --force overwrites it, and {NEW}\n"


def ration(folder, *words, before=(), **more):
    settings = {"cwd": folder} | {key: more.pop(key) for key in ("cwd", "preexec_fn") if key in more}
    return subprocess.run([*before, RATION, "run", "--sim", "2GiB", *map(str, words)], capture_output=True, text=True, timeout=HANG,
                          env=command_environment() | more, stdin=subprocess.DEVNULL, check=False, **settings)


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


def refused(folder, *words, says, **more):
    """Exit status 125, one line, and neither a file nor the command."""
    there = names(folder)
    done = ration(folder, *words, "--", "touch", STARTED, **more)
    expect(f"status and stdout, stderr {done.stderr!r}", (done.returncode, done.stdout), (125, ""))
    expect("stderr", done.stderr, f"ration: run: {says}")
    expect("files", names(folder), there)


def logged(folder, *words, calls=20, **more):
    """The lines of a run that writes a log."""
    done = ration(folder, *words, "--", COUNTED, "counts", 1, calls, **more)
    expect(f"status, stderr {done.stderr!r}", done.returncode, 0)
    return done.stderr.splitlines()


def allocations(path):
    return sum(record["t"] == "alloc" for record in read_log(pathlib.Path(path)))


def on_stdout(folder):
    says = "--log -: a log goes to a file, and stdout is the program's; write, for example, run.jsonl\n"
    for words in (["--log", "-"], ["--log=-"]):
        refused(folder, *words, says=says)
    refused(folder, RATION_LOG="-", says=says.replace("--log -", "RATION_LOG=-"))
    done = run("linked_lazy", folder=folder, RATION_LOG="-")
    expect("status", done.status, 0)
    expect_that(f"one line: {done.err!r}", done.err.startswith("ration: RATION_LOG=-: a log goes to a file") and done.err.count("\n") == 1)
    expect("files", names(folder), [])
    for stream in ("/dev/stdout", "/dev/null", "/dev/full"):
        refused(folder, "--log", stream, says=f"--log {stream}: a log goes to a regular file, and this is not one; write, for example, run.jsonl\n")
    logged(folder, "--log", "./-")
    expect("a file that is called so", allocations(f"{folder}/-"), 10)


def over_a_log(folder):
    path = pathlib.Path(folder) / "run.jsonl"
    logged(folder, "--log", "run.jsonl")
    before = path.read_bytes()
    refused(folder, "--log", "run.jsonl", says=f"--log run.jsonl: {path} is there already{OVERWRITES}")
    expect("the log", path.read_bytes(), before)
    logged(folder, "--log", "run.jsonl", "--force", calls=40)
    expect("overwritten", allocations(path), 20)
    path.unlink()
    path.touch()
    logged(folder, "--log", "run.jsonl")
    expect("over an empty file", allocations(path), 10)
    said = logged(folder, RATION_LOG=str(path), calls=60)
    expect("a variable's log is overwritten, and that is said", (said[0], allocations(path)),
           (f"ration: run: RATION_LOG={path}: {path} is there already and is overwritten; {NEW}", 30))
    path.unlink()
    expect_that("nothing is said of a new one", "is overwritten" not in "".join(logged(folder, RATION_LOG=str(path))))
    link = pathlib.Path(folder) / "link.jsonl"
    link.symlink_to("run.jsonl")
    refused(folder, "--log", "link.jsonl", says=f"--log link.jsonl: {link} is there already{OVERWRITES}")
    os.truncate(path, 9)  # as a process leaves it that dies within its first write
    refused(folder, "--log", "run.jsonl", says=f"--log run.jsonl: {path} is there already{OVERWRITES}")
    done = ration(folder, "--log", "run.jsonl", "--", "true", RATION_DISABLE="1")
    expect("nothing is written where Ration is inert", (done.returncode, path.stat().st_size), (0, 9))


def over_no_log(folder):
    """No option lets a log destroy a file that is none."""
    path = pathlib.Path(folder) / "train.py"
    path.write_text("print('precious')\n")
    for words in ([], ["--force"]):
        refused(folder, "--log", "train.py", *words,
                says=f"--log train.py: cannot write {path}: it is not a log, and stays as it is; choose another name\n")
    expect("the file", path.read_text(), "print('precious')\n")


def over_a_compressed_log(folder):
    plain, compressed = (pathlib.Path(folder) / name for name in ("run.jsonl", "run.jsonl.zst"))
    logged(folder, "--log", "run.jsonl.zst")
    refused(folder, "--log", "run.jsonl.zst", says=f"--log run.jsonl.zst: {compressed} is there already{OVERWRITES}")
    logged(folder, "--log", "run.jsonl.zst", "--force")
    expect("files", names(folder), ["counts", "run.jsonl.zst"])
    compressed.unlink()
    logged(folder, "--log", "run.jsonl")
    refused(folder, "--log", "run.jsonl.zst", says=f"--log run.jsonl.zst: {plain} is there already{OVERWRITES}")
    plain.unlink()
    log = "n" * 252 + ".zst"
    refused(folder, "--log", log, says=f"--log {log[:80]}... (256 characters): cannot write {folder}/{log}: its name is too long\n")
    compressed.write_text("my notes\n")
    for words in ([], ["--force"]):
        refused(folder, "--log", "run.jsonl.zst", *words,
                says=f"--log run.jsonl.zst: {compressed} is not a log, and stays as it is; choose another name\n")
    logged(folder, "--log", "run.jsonl")  # the plain name is another one


def of_another_compressor(folder):
    """Plain text under such a name would be a lie."""
    for name in ("run.jsonl.gz", "%n.xz", "run.bz2"):
        refused(folder, "--log", name, says=f"--log {name}: a log is compressed by zstd only; write, for example, run.jsonl.zst\n")
        refused(folder, RATION_LOG=name, says=f"RATION_LOG={name}: a log is compressed by zstd only; write, for example, run.jsonl.zst\n")
    done = ration(folder, "--log", ".gz", "--", COUNTED, "counts", 1, 20)  # that is its whole name
    expect(f"{done.stderr}", (done.returncode, allocations(f"{folder}/.gz")), (0, 10))


def over_a_part(folder):
    """What the parts of a log take with them: the part before the last one."""
    previous = pathlib.Path(folder) / "run.jsonl.previous"
    logged(folder, "--log", "run.jsonl")
    (pathlib.Path(folder) / "run.jsonl").rename(previous)
    refused(folder, "--log", "run.jsonl", "--log-size", "1MiB", says=f"--log run.jsonl: {previous} is there already{OVERWRITES}")
    logged(folder, "--log", "run.jsonl", "--log-size", "1MiB", "--force")
    (pathlib.Path(folder) / "run.jsonl").unlink()
    logged(folder, "--log", "run.jsonl")
    expect("a log in one part leaves it", allocations(previous), 10)


def placeholders(folder):
    """They are those of the command itself, a script's by its interpreter; a name with %p is always new."""
    host = os.uname().nodename
    for name, wanted in (("%n.jsonl", "counted.jsonl"), ("%h.jsonl", f"{host}.jsonl"), ("100%%.jsonl", "100%.jsonl")):
        logged(folder, "--log", name)
        path = pathlib.Path(folder) / wanted
        done = ration(folder, "--log", name, "--", COUNTED, "counts", 1, 20)
        expect("second time", (done.returncode, done.stderr), (125, f"ration: run: --log {name}: {path} is there already{OVERWRITES}"))
    for number, line in enumerate(("#!/usr/bin/env counted", f"#!{COUNTED}")):
        script = pathlib.Path(folder) / f"script{number}"
        script.write_text(line + " \n")
        script.chmod(0o700)
        done = ration(folder, "--log", "%n.jsonl", "--", script, PATH=f"{PROGRAMS}:{os.environ['PATH']}")
        expect_that(f"of {line}: {done.stderr}", done.returncode == 125 and "counted.jsonl is there already" in done.stderr)
    for _ in range(2):
        logged(folder, "--log", "a-%p.jsonl")
    expect("two", len([name for name in names(folder) if name.startswith("a-")]), 2)


def without_a_name(folder):
    """--log alone: %n-%p.jsonl in this folder, and the end names it."""
    for words in (["--log"], ["--log", "--limit", "1GiB"], ["-q", "--log"]):
        there = set(names(folder))
        said = logged(folder, *words)
        new, = set(names(folder)) - there - {"counts"}
        expect_that(f"{new} has the program and its number", new.startswith("counted-") and new.endswith(".jsonl"))
        expect("allocations", allocations(f"{folder}/{new}"), 10)
        expect("named at the end", [line for line in said if "jsonl" in line], [] if "-q" in words else [f"ration: log: {new}"])
    done = ration(folder, "--log", COUNTED)
    expect("no command", (done.returncode, done.stderr),
           (125, "ration: run: no command; write, for example: ration run --limit 40% -- ./train; the word after --log was taken as its file\n"))
    done = ration(folder, "--log=", "--", "true")
    expect("an empty name", (done.returncode, done.stderr),
           (125, "ration: run: --log has an empty value; give it one, or leave the option out\n"))
    shown = subprocess.run([RATION, "env", "--log", "--", "true"], cwd=folder, env=command_environment(), capture_output=True, text=True,
                           check=True)
    expect_that("ration env", f"RATION_LOG={os.path.realpath(folder)}/%n-%p.jsonl\n" in shown.stdout)


def named_at_the_end(folder):
    elsewhere = pathlib.Path(folder) / "elsewhere"
    elsewhere.mkdir()
    for log, says in (("run.jsonl", "run.jsonl"), (f"{folder}/elsewhere/%n.jsonl", "elsewhere/counted.jsonl"), ("run2.jsonl.zst", "run2.jsonl.zst")):
        expect("the last line", logged(folder, "--log", log)[-1], f"ration: log: {says}")
    said = logged(elsewhere, RATION_LOG=f"{folder}/other.jsonl")
    expect("beyond this folder", said[-1], f"ration: log: {os.path.realpath(folder)}/other.jsonl")
    expect("not of a device", [line for line in logged(folder, RATION_LOG="/dev/null") if "log" in line], [])
    done = ration(folder, "--log", "tree.jsonl", "--", "sh", "-c", "; ".join(f"{COUNTED} c{i} 1 10" for i in range(5)))
    last = done.stderr.splitlines()[-1]
    expect_that(f"of a tree: {last}", last.startswith("ration: logs: tree.jsonl, tree.jsonl.") and last.endswith(" and 2 more"))
    logged(folder, "--log", "a.jsonl", "--summary", "json")
    done = ration(folder, "--log", "b.jsonl", "--summary", "json", "--", COUNTED, "counts", 1, 20)
    json.loads(done.stderr)


def force_alone(folder):
    for more in ({}, {"RATION_LOG": f"{folder}/x.jsonl"}):
        refused(folder, "--force", says="--force requires --log\n", **more)


def find_min(folder):
    """It runs the command many times: its own runs replace one another's log, and no earlier one."""
    log = pathlib.Path(folder) / "run.jsonl"

    def find(*words):
        return subprocess.run([RATION, "find-min", "--sim", "1GiB", "--log", "run.jsonl", *words, "--", COUNTED, "counts", "1", "20"],
                              cwd=folder, env=command_environment(), capture_output=True, text=True, timeout=HANG, check=False)
    expect("status", find().returncode, 0)
    expect("allocations", allocations(log), 10)
    before = log.read_bytes()
    done = find()
    expect("a second time", (done.returncode, done.stderr),
           (2, f"ration: find-min: --log run.jsonl: {log} is there already{OVERWRITES}"))
    expect("the log", log.read_bytes(), before)
    expect("with --force", find("--force").returncode, 0)
    expect_that("another log", log.read_bytes() != before)


def nobodys_root():
    """In a child: root without the right to write where the mode forbids it."""
    if os.geteuid() == 0:
        pr_capbset_drop, cap_dac_override, cap_dac_read_search = 24, 1, 2
        for capability in (cap_dac_override, cap_dac_read_search):
            ctypes.CDLL(None).prctl(pr_capbset_drop, capability, 0, 0, 0)


def cannot_write(folder, log, why, path=None, **more):
    """By an option: nothing starts. By a variable: one line, and the command starts."""
    path = str(path or pathlib.Path(folder) / log)
    name = log if len(log) <= 80 else f"{log[:80]}... ({len(log)} characters)"
    refused(folder, "--log", log, says=f"--log {name}: cannot write {path.replace('%n', 'touch')}: {why}\n", **more)
    there = names(folder)
    done = ration(folder, "--", "echo", STARTED, **more, RATION_LOG=str(log))
    expect(f"started, {done.stderr!r}", (done.returncode, done.stdout), (0, STARTED + "\n"))
    expect("one line", [line for line in done.stderr.splitlines() if "saw no CUDA calls" not in line],
           [f"ration: run: RATION_LOG={name}: cannot write {path.replace('%n', 'echo')}: {why}; the command is started without a log"])
    expect("files", names(folder), there)


def nowhere(folder):
    here = pathlib.Path(folder)
    cannot_write(folder, "missing/run.jsonl", f"there is no folder {here}/missing")
    cannot_write(folder, "missing/run-%p.jsonl", f"there is no folder {here}/missing", path=f"{here}/missing/run-%p.jsonl")
    cannot_write(folder, "missing/run.jsonl.zst", f"there is no folder {here}/missing", path=f"{here}/missing/run.jsonl")
    (here / "file").write_text("text")
    cannot_write(folder, "file/run.jsonl", f"{here}/file is not a folder")
    (here / "sub").mkdir()
    cannot_write(folder, "sub", "it is a folder, and a log is a file")
    cannot_write(folder, "sub/", "it is a folder, and a log is a file", path=f"{here}/sub/")
    cannot_write(folder, "n" * 256, "its name is too long")
    cannot_write(folder, "n" * 250 + "-%p.jsonl", "its name is too long", path=f"{here}/{'n' * 250}-%p.jsonl")
    why = "no file can be created in /proc: No such file or directory" if os.geteuid() == 0 else "this user may not create files in /proc"
    cannot_write(folder, "/proc/run.jsonl", why, path="/proc/run.jsonl")
    cannot_write(folder, f"{here}/100%%/%n.jsonl", f"there is no folder {here}/100%", path=f"{here}/100%/%n.jsonl")
    done = ration(folder, "--", COUNTED, "counts", 1, 20, RATION_LOG="missing/run.jsonl")
    expect("told once", sum("log" in line for line in done.stderr.splitlines()), 1)
    (here / "counts").unlink()
    (here / "circle").symlink_to("circle")
    cannot_write(folder, "circle", "symbolic links lead in a circle")


def not_permitted(folder):
    here = pathlib.Path(folder)
    (here / "closed").mkdir(mode=0o555)
    (here / "barred/inner").mkdir(parents=True)
    (here / "barred").chmod(0)
    (here / "run.jsonl").touch(mode=0o400)
    cannot_write(folder, "closed/run.jsonl", f"this user may not create files in {here}/closed", preexec_fn=nobodys_root)
    without_nameless = {"LD_PRELOAD": str(PROGRAMS / "libtmpfile_interposer.so")}  # as on NFS
    cannot_write(folder, "closed/run.jsonl", f"this user may not create files in {here}/closed", preexec_fn=nobodys_root, **without_nameless)
    cannot_write(folder, "closed/%p.jsonl", f"this user may not create files in {here}/closed", path=f"{here}/closed/%p.jsonl",
                 preexec_fn=nobodys_root)
    cannot_write(folder, "barred/inner/run.jsonl", f"this user may not enter {here}/barred/inner", preexec_fn=nobodys_root)
    cannot_write(folder, "run.jsonl", "this user may not write it", preexec_fn=nobodys_root)
    (here / "barred").chmod(0o700)


def read_only(folder):
    """A file system of its own, in a mount namespace."""
    place = pathlib.Path(folder) / "place"
    place.mkdir()
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c",
               f'mount -t tmpfs x {place} && : >{place}/old.jsonl && mount -o remount,ro {place} && exec "$0" "$@"']
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        print("not tested: the kernel refuses a mount namespace")
        return
    for name in ("run.jsonl", "old.jsonl"):
        cannot_write(folder, f"place/{name}", "it is on a read-only file system", before=unshare)


def removed_folder(folder):
    gone = pathlib.Path(folder) / "gone"
    gone.mkdir()
    inside = ["sh", "-c", f'rmdir {gone}; "$0" "$@"; status=$?; mkdir {gone}; exit $status']
    refused(folder, "--log", "run.jsonl", cwd=gone, before=inside,
            says="--log run.jsonl: the folder that it would be in was removed; write an absolute path\n")
    done = ration(folder, "--", "echo", STARTED, cwd=gone, before=inside, RATION_LOG="run.jsonl")
    expect("started", (done.returncode, done.stdout), (0, STARTED + "\n"))
    expect("one line", [line for line in done.stderr.splitlines() if "RATION_LOG" in line],
           ["ration: run: RATION_LOG=run.jsonl: the folder that it would be in was removed; the command is started without a log"])
    logged(folder, "--log", f"{folder}/run.jsonl", calls=20)


def nothing_left(folder):
    """A command that makes no CUDA call leaves no file; and what is only known in the process is not judged here."""
    done = ration(folder, "--log", "run.jsonl", "--", "true")
    expect(f"{done.stderr}", (done.returncode, names(folder)), (0, []))
    done = ration(folder, "--log", "run.jsonl", "--", "true", LD_PRELOAD=str(PROGRAMS / "libtmpfile_interposer.so"))
    expect(f"{done.stderr}", (done.returncode, names(folder)), (0, []))
    (pathlib.Path(folder) / "counted").mkdir()
    script = f"exec {COUNTED} counts 1 20"
    done = ration(folder, "--log", "%n/run.jsonl", "--", "sh", "-c", script)
    expect(f"{done.stderr}", (done.returncode, allocations(f"{folder}/counted/run.jsonl")), (0, 10))


main({"on stdout": on_stdout, "over a log": over_a_log, "over a file that is no log": over_no_log,
      "over a compressed log": over_a_compressed_log, "of another compressor": of_another_compressor, "over a part": over_a_part, "placeholders": placeholders,
      "without a name": without_a_name, "named at the end": named_at_the_end, "--force alone": force_alone,
      "find-min": find_min, "nowhere": nowhere, "not permitted": not_permitted, "on a read-only file system": read_only,
      "in a removed folder": removed_folder, "nothing is left": nothing_left})
