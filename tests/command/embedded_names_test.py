#!/usr/bin/env python3
"""`ration run --embed-names`: the log names the functions in its stacks, so that its readers need none of the program's files."""
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from harness import BUILD, HANG, PROGRAMS, command_environment, expect, expect_that, main, of_type, read_log

RATION = BUILD / "bin/ration"
CALLS = 12000


def ration(folder, *words):
    return subprocess.run([RATION, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=HANG,
                          env=command_environment(), stdin=subprocess.DEVNULL, check=False)


def program(folder, name="callers"):
    copy = pathlib.Path(folder) / f"{name}.copy"
    shutil.copy(PROGRAMS / name, copy)
    return copy


def recorded(folder, *command, log="run.jsonl", options=("--embed-names",), status=0):
    done = ration(folder, "run", "--sim", "2GiB", "--limit", "1GiB", "--log", log, "--stacks", "native", *options, "--", *command)
    expect(f"status, {done.stderr}", done.returncode, status)
    return done.stderr


def report(folder, log="run.jsonl", *words):
    done = ration(folder, "report", log, *words)
    expect(f"status, {done.stderr}", done.returncode, 0)
    return done.stdout + done.stderr


def leaks(folder, log="run.jsonl"):
    done = ration(folder, "report", "--json", log)
    return [leak["stack"] for leak in json.loads(done.stdout)["leaks"]]


def without_the_binary(folder):
    copy = program(folder)
    recorded(folder, copy, "refused")
    with_binary = report(folder)
    expect_that(f"named: {with_binary}", "called by by_right" in with_binary)
    shutil.copy(PROGRAMS / "holds", copy)
    expect("the binary has changed", report(folder), with_binary)
    copy.unlink()
    expect("the binary is gone", report(folder), with_binary)
    records = read_log(pathlib.Path(folder) / "run.jsonl")
    expect("the end stays last", [record["t"] for record in records].index("end"), len(records) - 1)
    native = {record["id"] for record in of_type(records, "frame") if record["mod"]}
    expect_that("frames", {record["frame"] for record in of_type(records, "names")} <= native)
    with open(pathlib.Path(folder) / "run.jsonl", "rb") as log:
        done = subprocess.run([RATION, "report", "-"], stdin=log, capture_output=True, text=True, timeout=HANG, check=False)
    expect_that(f"on standard input: {done.stdout}", "called by by_right" in done.stdout)
    text = (pathlib.Path(folder) / "run.jsonl").read_bytes()
    for name, piped in (("plain", text), ("compressed", gzip.compress(text))):
        done = subprocess.run([RATION, "report", "-"], input=piped, capture_output=True, timeout=HANG, check=False)
        expect_that(f"through a pipe, {name}: {done.stdout} {done.stderr}", done.returncode == 0 and b"called by by_right" in done.stdout)
    done = subprocess.run([RATION, "report", "-"], input=gzip.compress(text)[:-20], capture_output=True, timeout=HANG, check=False)
    expect_that(f"cut off: {done.stderr}", done.returncode == 2 and b"the compressed file was cut off" in done.stderr)
    done = subprocess.run([RATION, "report", "-"], input=text[:-9], capture_output=True, timeout=HANG, check=False)
    expect_that(f"cut off in its last line: {done.stderr}", done.returncode == 0 and b"the log was cut off in line" in done.stderr)


def without_the_option(folder):
    copy = program(folder)
    recorded(folder, copy, "refused", options=())
    expect("no names", of_type(read_log(pathlib.Path(folder) / "run.jsonl"), "names"), [])
    copy.unlink()
    said = report(folder)
    expect_that(f"an offset: {said}", "called by callers.copy+0x" in said and "it is not here" in said)


def stripped(folder):
    copy = program(folder)
    subprocess.run(["strip", copy], check=True)
    recorded(folder, copy, "refused", options=())
    why = "functions of the program without a name: its file was stripped; leave out strip and -s, or link with -rdynamic"
    expect(f"once in {report(folder)}", report(folder).splitlines().count(why), 1)
    recorded(folder, program(folder), "refused", options=("--force",))
    expect_that("not of another one", why not in report(folder))


def every_reader(folder):
    copy = program(folder)
    recorded(folder, copy, "depths", 40)
    formats = ("pprof", "collapsed", "csv", "torch", "chrome")

    def converted():
        for kind in formats:
            ration(folder, "convert", "run.jsonl", "--to", kind, "-o", f"{folder}/{kind}")
            text = (pathlib.Path(folder) / kind).read_bytes()
            yield kind, gzip.decompress(text) if kind == "pprof" else text

    wanted = dict(converted())
    for kind in ("pprof", "collapsed", "csv"):
        expect_that(f"{kind} has names", b"by_left" in wanted[kind])
    page = (ration(folder, "report", "run.jsonl", "-o", "a.html"), pathlib.Path(folder) / "a.html")[1].read_text()
    stacks = leaks(folder)
    copy.unlink()
    expect("formats", {kind: text == wanted[kind] for kind, text in converted()}, {kind: True for kind in formats})
    ration(folder, "report", "run.jsonl", "-o", "b.html")
    expect_that("page", "by_left" in page and (pathlib.Path(folder) / "b.html").read_text().count("by_left") == page.count("by_left"))
    expect("stacks", leaks(folder), stacks)


def compressed(folder):
    copy = program(folder)
    said = recorded(folder, copy, "refused", log="run.jsonl.zst")
    expect_that(f"said: {said}", "ration: log: run.jsonl.zst\n" in said)
    copy.unlink()
    expect_that("named", "called by by_right" in report(folder, "run.jsonl.zst"))
    expect("files", sorted(os.listdir(folder)), ["run.jsonl.zst"])


def of_a_tree(folder):
    copy = program(folder)
    recorded(folder, "sh", "-c", f"{copy} refused; {copy} depths 3; RATION_STACKS=none {copy} refused")
    logs = sorted(path.name for path in pathlib.Path(folder).glob("run.jsonl*"))
    expect("logs", len(logs), 3)
    copy.unlink()
    named = sorted(len(of_type(read_log(pathlib.Path(folder) / log), "names")) > 0 for log in logs)
    expect("with names", named, [False, True, True])
    both = [report(folder, log) for log in logs]
    expect("named", sum("by_right" in text or "by_left" in text for text in both), 2)


def in_parts(folder):
    copy = program(folder, "counted")
    recorded(folder, copy, "counts", 1, CALLS, options=("--embed-names", "--log-size", "1MiB"))
    copy.unlink()
    names = [(pathlib.Path(folder) / name).read_bytes().count(b'{"t":"names"') for name in ("run.jsonl.previous", "run.jsonl")]
    expect_that(f"the last part has names: {names}", names[0] == 0 and names[1] > 1)
    said = report(folder)
    expect_that(f"named: {said}", "counted.copy+0x" not in said and "not here" not in said)


def keeps_its_bytes(folder):
    """But for its first line, which tells readers of the names, and the number of its end, which comes after theirs."""
    copy = program(folder, "counted")
    recorded(folder, "sh", "-c", f"{copy} counts 1 {CALLS}; cp run.jsonl before.jsonl")
    before, after = ((pathlib.Path(folder) / name).read_bytes() for name in ("before.jsonl", "run.jsonl"))
    expect_that(f"{len(before)} bytes", len(before) > 2 << 20)
    (first, before), (told, after) = (text.split(b"\n", 1) for text in (before, after))
    expect("first line", json.loads(told), json.loads(first) | {"names": True})
    end = before.rindex(b'{"t":"end"')
    expect_that("what is before the end", after[:end] == before[:end])
    added = [json.loads(line) for line in after[end:].splitlines()]
    expect("added", {record["t"] for record in added[:-1]}, {"names"})
    expect("end", added[-1] | {"seq": 0}, json.loads(before[end:]) | {"seq": 0})
    expect("mode", (pathlib.Path(folder) / "run.jsonl").stat().st_mode, (pathlib.Path(folder) / "before.jsonl").stat().st_mode)
    read_log(pathlib.Path(folder) / "run.jsonl")


def until_counted(calls):
    return f"until [ \"$(od -An -tu8 -N8 counts 2>/dev/null | tr -d ' ')\" = {calls} ]; do :; done"


def killed(folder):
    copy = program(folder, "counted")
    recorded(folder, "sh", "-c", f"{copy} counts 1 60 stay </dev/zero & {until_counted(60)}; kill -9 $!; wait")
    copy.unlink()
    records = read_log(pathlib.Path(folder) / "run.jsonl")
    expect("last", (records[-1]["t"], of_type(records, "end")), ("names", []))
    said = report(folder)
    expect_that(f"named: {said}", "counted.copy+0x" not in said and "no end record" in said)


def interrupted(folder):
    """A signal ends the command, and then the log gets its names."""
    copy = program(folder, "counted")
    with subprocess.Popen([RATION, "run", "--sim", "2GiB", "--log", "run.jsonl", "--stacks", "native", "--embed-names", "--", copy, "counts", "1", "60", "stay"],
                          cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=command_environment()) as running:
        counts = pathlib.Path(folder) / "counts"
        while not counts.exists() or int.from_bytes(counts.read_bytes()[:8], "little") < 60:
            pass
        running.send_signal(signal.SIGTERM)
        expect("status", running.wait(timeout=HANG), 128 + signal.SIGTERM)
    copy.unlink()
    expect_that("named", "counted.copy+0x" not in report(folder))


def without_room(folder):
    """The last process gives `ration`, its parent, a small limit of file sizes."""
    copy = program(folder)
    limited = "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (1000, 1000))"
    said = recorded(folder, "sh", "-c", f'{copy} refused; cp run.jsonl before.jsonl; exec "$0" -c "{limited}"', sys.executable)
    expect("said", [line for line in said.splitlines() if "names" in line],
           [f"ration: run: the log {folder}/run.jsonl stays without names of functions: File too large"])
    expect_that("the log is as it was", (pathlib.Path(folder) / "run.jsonl").read_bytes() == (pathlib.Path(folder) / "before.jsonl").read_bytes())
    expect("files", sorted(os.listdir(folder)), ["before.jsonl", "callers.copy", "run.jsonl"])


def on_a_full_disk(folder):
    place = pathlib.Path(folder) / "place"
    place.mkdir()
    namespace = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=1m x {place} && "$0" "$@"; status=$?; cp {place}/*.jsonl {folder}; ls -A {place} >{folder}/list; exit $status']
    if not shutil.which("unshare") or subprocess.run([*namespace[:-1], f"mount -t tmpfs x {place}"], capture_output=True, check=False).returncode != 0:
        print("not tested: the kernel refuses a mount namespace")
        return
    copy = program(folder)
    fill = f"{copy} refused; cp {place}/run.jsonl {place}/before.jsonl; cat /dev/zero >{place}/full 2>/dev/null; true"
    done = subprocess.run([*namespace, RATION, "run", "--sim", "2GiB", "--log", f"{place}/run.jsonl", "--stacks", "native", "--embed-names", "--", "sh", "-c", fill],
                          cwd=folder, capture_output=True, text=True, timeout=HANG, env=command_environment(), stdin=subprocess.DEVNULL, check=False)
    expect(f"status, {done.stderr}", done.returncode, 0)
    expect_that(f"said: {done.stderr}", done.stderr.count("stays without names of functions: No space left on device") == 1)
    expect_that("the log is as it was", (pathlib.Path(folder) / "run.jsonl").read_bytes() == (pathlib.Path(folder) / "before.jsonl").read_bytes())
    expect("files there", (pathlib.Path(folder) / "list").read_text().split(), ["before.jsonl", "full", "run.jsonl"])


def a_process_left_behind(folder):
    copy = program(folder, "counted")
    os.mkfifo(folder + "/end")
    writer = os.open(folder + "/end", os.O_RDWR)
    said = recorded(folder, "sh", "-c", f"{copy} counts 1 10 stay <end >out 2>&1 & {until_counted(10)}")
    os.close(writer)
    expect_that(f"said: {said}", "stays without names of functions: a process that the command left behind still has it open" in said)


def what_it_needs(folder):
    for words, lacks in (([], " --log FILE --stacks native"), (["--log", "run.jsonl"], " --stacks native"), (["--stacks", "native"], " --log FILE")):
        done = ration(folder, "run", "--sim", "2GiB", "--embed-names", *words, "--", "touch", "started")
        expect(f"{words}", (done.returncode, done.stderr),
               (125, f"ration: run: --embed-names writes the names of the functions in a log with stacks; add{lacks}\n"))
    expect("nothing was started", os.listdir(folder), [])
    done = ration(folder, "find-min", "--embed-names", "--", "true")
    expect("find-min", (done.returncode, done.stderr), (2, "ration: find-min: --embed-names is an option of `ration run` alone\n"))


main({"without the binary": without_the_binary, "without the option": without_the_option, "stripped": stripped, "every reader": every_reader,
      "compressed": compressed, "of a tree": of_a_tree, "in parts": in_parts, "keeps its bytes": keeps_its_bytes, "killed": killed,
      "interrupted": interrupted, "without room": without_room, "on a full disk": on_a_full_disk,
      "a process left behind": a_process_left_behind, "what it needs": what_it_needs})
