#!/usr/bin/env python3
"""`--log FILE.zst`: the log is plain while the command runs, and compressed at its end; readers take both."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from harness import BUILD, HANG, PROGRAMS, command_environment, expect, expect_that, main, read_log

RATION = BUILD / "bin/ration"
COUNTED = PROGRAMS / "counted"
CALLS = 600
WITHOUT_NAMELESS = {"LD_PRELOAD": str(PROGRAMS / "libtmpfile_interposer.so")}  # as on NFS


def ration(folder, *words, **more):
    return subprocess.run([RATION, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=HANG,
                          env=command_environment() | more, stdin=subprocess.DEVNULL, check=False)


def logged(folder, *words, log="run.jsonl.zst", status=0, options=(), **more):
    done = ration(folder, "run", "--sim", "2GiB", *(["--log", log] if log else []), *options, "--", *words, **more)
    expect(f"status, stderr {done.stderr!r}", done.returncode, status)
    return done.stderr


def counted(folder, **more):
    return logged(folder, COUNTED, "counts", 1, CALLS, **more)


def until_counted(calls):
    """For a shell."""
    return f"until [ \"$(od -An -tu8 -N8 counts 2>/dev/null | tr -d ' ')\" = {calls} ]; do :; done"


def frame(*blocks, window=17):
    """One of zstd (RFC 8878, 3.1.1), of (kind, size, bytes); it holds 2^window bytes at most at once."""
    text = b"\x28\xb5\x2f\xfd\0" + bytes([(window - 10) << 3])
    for last, (kind, size, content) in zip([*[0] * (len(blocks) - 1), 1], blocks):
        text += (last | kind << 1 | size << 3).to_bytes(3, "little") + content
    return text


def raw(text):
    return [(0, len(text[at:at + 65536]), text[at:at + 65536]) for at in range(0, len(text), 65536)]


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).glob("*run.jsonl*"))


def report(folder, *logs):
    done = ration(folder, "report", "--json", *(logs or ["run.jsonl.zst"]))
    expect(f"status, stderr {done.stderr!r}", done.returncode, 0)
    return json.loads(done.stdout)


def allocations(folder, *logs):
    """Those that the logs have records of."""
    return sum(caller["allocs"] for log in report(folder, *logs)["logs"] for device in log["devices"] for caller in device["callers"])


def problem(folder, log, verb=("report",)):
    done = ration(folder, *verb, log)
    expect("status", (done.returncode, done.stdout), (2, ""))
    return done.stderr


def compressed(folder):
    said = counted(folder)
    expect_that(f"the log is named by what it is at the end: {said!r}", said.count("run.jsonl") == 1 and said.endswith("log: run.jsonl.zst\n"))
    expect("files", names(folder), ["run.jsonl.zst"])
    path = pathlib.Path(folder) / "run.jsonl.zst"
    expect("a frame", path.read_bytes()[:4], b"\x28\xb5\x2f\xfd")
    counted(folder, log="plain.jsonl")
    expect("the mode", path.stat().st_mode, (pathlib.Path(folder) / "plain.jsonl").stat().st_mode)
    expect("allocations", allocations(folder), CALLS // 2)
    for more in (WITHOUT_NAMELESS, {}):  # over the earlier one
        logged(folder, COUNTED, "counts", 1, 20, options=["--force"], **more)
        expect("files", (names(folder), allocations(folder)), (["run.jsonl.zst"], 10))


def every_reader(folder):
    """Each says of the compressed log what it says of the plain one."""
    counted(folder, log="run.jsonl")
    both = [pathlib.Path(folder) / "plain.jsonl", pathlib.Path(folder) / "run.jsonl.zst"]
    shutil.copy(pathlib.Path(folder) / "run.jsonl", both[0])
    lines = both[0].read_bytes().splitlines(keepends=True)  # of another compressor: two frames, and one to be skipped
    both[1].write_bytes(b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + b"".join(frame(*raw(b"".join(part))) for part in (lines[:3], lines[3:])))
    (pathlib.Path(folder) / "run.jsonl").unlink()
    for words in (["report"], ["report", "--leaks"], ["report", "--json"], ["check", "--no-failures"], ["check", "--max-peak", "1MiB"],
                  ["replay", "--find-min"], ["convert", "--to", "csv"], ["diff", str(both[0])]):
        seen = [ration(folder, words[0], str(log), *words[1:]) for log in both]
        said = [done.stdout.replace(str(both[0]), "LOG").replace(str(both[1]), "LOG").splitlines() for done, log in zip(seen, both)]
        expect(f"{words}: output", said[1], said[0])
        expect(f"{words}: status, {seen[1].stderr!r}", seen[1].returncode, seen[0].returncode)
    done = ration(folder, "report", both[1], "-o", both[1].with_suffix(".html"))
    expect(f"page: {done.stderr!r}", done.returncode, 0)
    done = ration(folder, "convert", both[0], "--to", "csv", "-o", both[1])
    expect_that(f"{done.stderr!r}", done.returncode == 125 and "it is a log, and stays as it is" in done.stderr)
    os.link(both[1], named := both[1].with_name("log.html"))
    done = ration(folder, "report", both[0], "-o", named)
    expect_that(f"{done.stderr!r}", done.returncode == 125 and "it is a log, and stays as it is" in done.stderr)
    with open(both[1], "rb") as pipe, subprocess.Popen(["cat"], stdin=pipe, stdout=subprocess.PIPE) as cat:
        done = subprocess.run([RATION, "report", "--json", "/dev/stdin"], stdin=cat.stdout, capture_output=True, text=True, check=False)
    expect("through a pipe", json.loads(done.stdout)["allocs"], CALLS // 2)


def from_a_variable(folder):
    """Without `ration run` nobody compresses; placeholders mean what they mean in a plain log's name."""
    counted(folder, log=None, RATION_LOG=f"{folder}/%n-run.jsonl.zst")
    expect("files", names(folder), ["counted-run.jsonl.zst"])
    done = subprocess.run([COUNTED, "counts", "1", "10"], cwd=folder, timeout=HANG, check=False, env=command_environment() | {
        "LD_PRELOAD": os.environ["PRELOAD_LIBRARIES"], "LD_LIBRARY_PATH": str(BUILD / "lib/ration/sim"), "RATION_LOG": "alone-run.jsonl.zst"})
    expect("status", done.returncode, 0)
    expect("files", names(folder), ["alone-run.jsonl", "counted-run.jsonl.zst"])
    expect("by either name", allocations(folder, "alone-run.jsonl.zst"), 5)
    expect("which is said", ration(folder, "report", "alone-run.jsonl.zst", "--json").stderr,
           "ration: report: alone-run.jsonl.zst is not there: alone-run.jsonl is read\n")
    expect("by either name", allocations(folder, "counted-run.jsonl"), CALLS // 2)


def of_a_tree(folder):
    """A log for each process; one that asked for another log has it as it asked."""
    logged(folder, "sh", "-c", f"{COUNTED} a 1 10; {COUNTED} b 1 20; RATION_LOG=$PWD/other-run.jsonl {COUNTED} c 1 30")
    seen = names(folder)
    expect_that(f"{seen}", len(seen) == 3 and seen[0] == "other-run.jsonl" and seen[1].endswith(".zst") and seen[2] == "run.jsonl.zst")
    expect("allocations", sorted(allocations(folder, name) for name in seen), [5, 10, 15])


def in_parts(folder):
    counted(folder, options=("--log-size", "1MiB"))
    expect("files", names(folder), ["run.jsonl.zst"])
    logged(folder, COUNTED, "counts", 1, 16000, options=("--log-size", "1MiB", "--force"))
    expect("files", names(folder), ["run.jsonl.previous.zst", "run.jsonl.zst"])
    document = report(folder)
    log = document["logs"][0]
    expect_that(f"one to two parts of {log}", 2000 < allocations(folder) < 8000 and log["dropped"] > 0)
    expect("counted by its end", (document["allocs"], document["frees"]), (8000, 8000))
    # Killed between the two: one part is plain.
    logged(folder, COUNTED, "counts", 1, 16000, options=("--log-size", "1MiB"), log="run.jsonl")
    for path in list(pathlib.Path(folder).glob("*.zst")):
        path.unlink()
    wanted = allocations(folder, "run.jsonl")
    for name in ("run.jsonl.previous", "run.jsonl"):
        path = pathlib.Path(folder) / name
        pathlib.Path(str(path) + ".zst").write_bytes(frame(*raw(path.read_bytes())))
        path.unlink()
        expect(f"with {name} compressed", [allocations(folder, name) for name in ("run.jsonl", "run.jsonl.zst")], [wanted, wanted])


def killed_between_two_names(folder):
    """The part that was begun has no name yet, and the one before it has the name of one before."""
    counted(folder, log="run.jsonl")
    path = pathlib.Path(folder) / "run.jsonl"
    records = read_log(path)
    meta = records[0] | {"part": 2, "first_seq": records[-1]["seq"] + 1}
    path.rename(str(path) + ".previous")
    pathlib.Path(str(path) + ".new").write_text(json.dumps(meta) + "\n")
    expect("allocations", allocations(folder, "run.jsonl"), CALLS // 2)
    pathlib.Path(str(path) + ".new").unlink()
    expect_that("only an old part", "No such file" in problem(folder, "run.jsonl"))


def a_process_left_behind(folder):
    """It still writes: its log stays plain, and says so. An earlier run's compressed one is not taken for it."""
    counted(folder)
    os.mkfifo(folder + "/end")
    writer = os.open(folder + "/end", os.O_RDWR)
    said = logged(folder, "sh", "-c", f"{COUNTED} counts 1 10 stay <end >out 2>&1 & {until_counted(10)}", options=["--force"])
    os.close(writer)
    expect_that(f"said: {said!r}", "run.jsonl stays as it is, not compressed: a process that the command left behind" in said)
    expect("files", names(folder), ["run.jsonl"])
    expect("allocations", allocations(folder), 5)


def files_that_are_no_logs(folder):
    def by_variable():
        return counted(folder, log=None, RATION_LOG=str(path))  # --log refuses such names at the start: log_target_test.py

    path = pathlib.Path(folder) / "run.jsonl.zst"
    for content in (b"my notes\n", b"\x28\xb5\x2f\xfd of something else"):
        path.write_bytes(content)
        said = by_variable()
        expect_that(f"said: {said!r}", "is not a log, and stays as it is" in said)
        expect("the file", path.read_bytes(), content)
        expect("allocations", allocations(folder, "run.jsonl"), CALLS // 2)
    path.unlink()
    path.symlink_to("elsewhere")
    said = by_variable()
    expect_that(f"said: {said!r}", "is not a log, and stays as it is" in said)
    path.unlink()
    path.touch()
    by_variable()
    expect("an empty file was replaced", (names(folder), allocations(folder)), (["run.jsonl.zst"], CALLS // 2))
    by_variable()
    expect("so was a log", (names(folder), allocations(folder)), (["run.jsonl.zst"], CALLS // 2))
    plain = pathlib.Path(folder) / "run.jsonl"
    plain.write_text("my notes\n")
    by_variable()
    expect("a file by the plain name", plain.read_text(), "my notes\n")


def without_room(folder):
    """What cannot be compressed is kept: the last process gives `ration`, its parent, a small limit of file sizes."""
    limited = "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (1000, 1000))"
    said = logged(folder, "sh", "-c", f'{COUNTED} counts 1 {CALLS}; exec "$0" -c "{limited}"', sys.executable)
    expect_that(f"said: {said!r}", "run.jsonl stays as it is, not compressed: File too large" in said)
    expect("files", sorted(path.name for path in pathlib.Path(folder).iterdir()), ["counts", "run.jsonl"])
    expect("allocations", allocations(folder), CALLS // 2)
    for log, more in (("n" * 252 + ".zst", {}),  # the plain name fits, and the other does not; nor does that of a file beside it
                      ("m" * 251 + ".zst", WITHOUT_NAMELESS)):
        said = counted(folder, log=None, RATION_LOG=log, **more)
        expect_that(f"said: {said!r}", "stays as it is, not compressed: File name too long" in said)
        expect("allocations", allocations(folder, log), CALLS // 2)


def through_a_link(folder):
    """The name would be left without a file: the log stays plain, and a line says why."""
    (pathlib.Path(folder) / "store").mkdir()
    link = pathlib.Path(folder) / "run.jsonl"
    link.symlink_to("store/real.jsonl")
    said = counted(folder)
    expect_that(f"said: {said!r}", f"store/real.jsonl stays as it is, not compressed: {folder}/run.jsonl is a symbolic link to it" in said)
    expect("files", (names(folder), os.listdir(f"{folder}/store")), (["run.jsonl"], ["real.jsonl"]))
    expect("allocations", allocations(folder, "run.jsonl"), CALLS // 2)
    (pathlib.Path(folder) / "here").symlink_to("store")
    counted(folder, log="here/run.jsonl.zst")
    expect("a folder may be one", sorted(os.listdir(f"{folder}/store")), ["real.jsonl", "run.jsonl.zst"])


def begun_in_vain(folder):
    """A part that was begun, and had not taken its name when its process was killed, goes with the log."""
    begin = 'until [ -s run.jsonl ]; do :; done; head -n 1 run.jsonl >run.jsonl.new; echo "{}" >other-run.jsonl.new'
    logged(folder, "sh", "-c", f"{COUNTED} counts 1 {CALLS}; {begin}")
    expect("files", names(folder), ["other-run.jsonl.new", "run.jsonl.zst"])


def killed_while_compressing(folder):
    """SIGKILL leaves the plain log, and nothing beside it. Repeated until one came while the new file was open."""
    def writes(pid):
        """Whether it has a file of the folder open that is not the log, and has begun to fill it (one to try the folder stays empty)."""
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                file = os.readlink(entry)
                size = entry.stat().st_size
            except FileNotFoundError:
                continue
            if file.startswith(folder + "/") and file != f"{folder}/run.jsonl" and size:
                return True
        return False

    met = False
    while not met:
        with subprocess.Popen([RATION, "run", "--sim", "2GiB", "--log", "run.jsonl.zst", "--force", "--", COUNTED, "counts", "1", "200000"],
                              cwd=folder, stderr=subprocess.DEVNULL, env=command_environment()) as run:
            while not met and run.poll() is None:
                met = writes(run.pid)
            run.kill()
            met = met and run.wait() == -signal.SIGKILL
    expect("files", names(folder), ["run.jsonl"])
    expect("allocations", allocations(folder, "run.jsonl"), 100000)


def broken(folder):
    logged(folder, COUNTED, "counts", 1, 16000)
    path = pathlib.Path(folder) / "run.jsonl.zst"
    whole = path.read_bytes()
    for end in (1, 3, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        for verb in (("report",), ("replay", "--find-min"), ("convert", "--to", "csv", "-o", folder + "/csv")):
            expect_that(f"cut at {end}: {verb}", "the compressed file was cut off" in problem(folder, path, verb))
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 0x5a
    path.write_bytes(changed)
    expect_that("changed", problem(folder, path))  # a record that is none, or a checksum that does not fit
    path.write_bytes(whole + b"more")
    expect_that("more after it", "it cannot be decompressed: " in problem(folder, path))
    path.write_bytes(b"(notes)\n")
    expect_that("no frame", "not a log of Ration" in problem(folder, path))
    path.write_bytes(frame(*[(1, 1 << 17, b" ")] * 4096))
    expect_that("a line of 512 MiB", "a line of it is longer than that of any record" in problem(folder, path))
    path.write_bytes(frame(*raw(b"{}"), window=30))
    expect_that("a window of 1 GiB", "it cannot be decompressed: Frame requires too much memory" in problem(folder, path))


def killed(folder):
    """The command's log is whole, and compressed by the `ration` that outlives it; one that is killed leaves it plain."""
    logged(folder, "sh", "-c", f"{COUNTED} counts 1 {CALLS} stay </dev/zero & {until_counted(CALLS)}; kill -9 $!; wait")
    expect("files", names(folder), ["run.jsonl.zst"])
    expect("allocations", allocations(folder), CALLS // 2)
    os.unlink(folder + "/run.jsonl.zst")
    os.unlink(folder + "/counts")
    with subprocess.Popen([RATION, "run", "--sim", "2GiB", "--log", "run.jsonl.zst", "--", COUNTED, "counts", "1", str(CALLS), "stay"],
                          cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=command_environment()) as run:
        counts = pathlib.Path(folder) / "counts"
        while not counts.exists() or int.from_bytes(counts.read_bytes()[:8], "little") < CALLS:
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
        expect("plain", names(folder), ["run.jsonl"])
        expect("allocations", allocations(folder), CALLS // 2)


main({"compressed": compressed, "every_reader": every_reader, "from_a_variable": from_a_variable, "of_a_tree": of_a_tree,
      "in_parts": in_parts, "killed_between_two_names": killed_between_two_names, "a_process_left_behind": a_process_left_behind,
      "files_that_are_no_logs": files_that_are_no_logs, "through_a_link": through_a_link,
      "begun_in_vain": begun_in_vain, "killed_while_compressing": killed_while_compressing, "without_room": without_room, "broken": broken, "killed": killed})
