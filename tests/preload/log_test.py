#!/usr/bin/env python3
"""The log, for every way in which a process can end and every log path; no log failure affects the program."""
import os
import pathlib
import re
import signal
import subprocess

from harness import (LIBRARIES, PROGRAMS, SANITIZED, clean_environment, driver_folder, expect, expect_that, main, of_type, peak_of,
                     read_log, run)

LIMITED = {"RATION_LIMIT": "1GiB"}
FILLED = "blocks=10 code=2 null=1\n"


def ending(how, status, has_end, **settings):
    def case(folder):
        done = run("endings", how, folder=folder, **LIMITED, **settings)
        expect("status", done.status, status)
        records = done.logs["run.jsonl"]
        no_line_crosses_a_page(pathlib.Path(folder) / "run.jsonl")
        ends = of_type(records, "end")
        expect("end records", len(ends), int(has_end))
        allocs, frees, ooms = (of_type(records, kind) for kind in ("alloc", "free", "oom"))
        expect_that(f"{len(allocs)} allocs, {len(frees)} frees, {len(ooms)} ooms", len(allocs) >= 120 and len(frees) >= 80 and ooms)
        peak = peak_of(records)
        if has_end:
            expect("end", (records[-1]["t"], records[-1]["peak"], records[-1]["allocs"], records[-1]["frees"], records[-1]["ooms"]),
                   ("end", [peak], len(allocs), len(frees), len(ooms)))
            expect("live", records[-1]["live"][0]["count"], len(allocs) - len(frees))
    return case


def main_thread_ends(how, *lines, preload=LIBRARIES):
    """No thread of Ration's keeps a process alive whose threads have ended; with `preload` None, as without Ration."""
    def case(folder):
        done = run("main_thread_ends", how, folder=folder if preload else None, preload=preload, RATION_GROUP="of_threads",
                   RATION_GROUP_LIMIT="1GiB")
        expect("status, output", (done.status, done.err, done.out.splitlines()), (0, "", list(lines)))
        expect("end records", len(of_type(done.logs.get("run.jsonl", []), "end")), int(bool(preload)))
    return case


def no_line_crosses_a_page(path):
    """A kill between the pages of one write would leave half a line."""
    at = 0
    for line in path.read_bytes().splitlines(keepends=True):
        expect_that(f"the line at {at} crosses a page", len(line) > 4096 or at // 4096 == (at + len(line) - 1) // 4096)
        at += len(line)
    expect_that("more than one page was written", at > 4096)


def two_processes(folder):
    """A second process of one tree, with the same LOG, writes LOG.<pid>."""
    done = run("processes", "fork_then_parent", folder=folder, **LIMITED)
    expect("stdout", done.out, FILLED * 2)
    two_logs(done.logs, 10, 10)


def second_image(folder):
    """One process, two programs: exec after the first has used CUDA."""
    done = run("processes", "exec_after_use", folder=folder, **LIMITED)
    expect("stdout", done.out, FILLED)
    two_logs(done.logs, 1, 10)


def two_logs(logs, *allocations):
    expect("names", [re.sub(r"\d+$", "PID", name) for name in sorted(logs)], ["run.jsonl", "run.jsonl.PID"])
    for name, count in zip(sorted(logs), allocations):
        expect(f"allocations in {name}", len(of_type(logs[name], "alloc")), count)
        suffix = name.rpartition(".")[2]
        expect_that(f"{name} is not of {logs[name][0]['pid']}", suffix in ("jsonl", str(logs[name][0]["pid"])))


def child_of_a_user(folder):
    """The child of a process that uses CUDA gets the driver's own result code, and does not hang."""
    plain = run("processes", "fork_after_use", preload=None, SIMCUDA_DEVICES="16GiB")
    done = run("processes", "fork_after_use", folder=folder, **LIMITED)
    expect("stdout", done.out.replace("blocks=10 ", "blocks=161 "), plain.out)
    expect("allocations", len(of_type(done.logs["run.jsonl"], "alloc")), 10)


def earlier_log(folder):
    """A log of an earlier run is replaced."""
    path = pathlib.Path(folder) / "run.jsonl"
    path.write_text('{"t":"meta","schema":"ration.events/1"}\n' * 10000)
    done = run("linked_lazy", folder=folder, **LIMITED)
    expect("allocations", len(of_type(done.logs["run.jsonl"], "alloc")), 10)


def unaffected(lines, **environment):
    done = run("linked_lazy", **LIMITED, **environment)
    expect("status, stdout", (done.status, done.out), (0, FILLED))
    expect(f"lines on stderr: {done.err!r}", len(done.err.splitlines()), lines)
    return done


def no_folder(folder):
    done = unaffected(1, RATION_LOG=f"{folder}/missing/run.jsonl")
    expect_that(done.err, "no log: " in done.err and f"{folder}/missing/run.jsonl" in done.err)


def a_folder(folder):
    expect_that("it is named", folder in unaffected(1, RATION_LOG=folder).err)


def full_disk(folder):
    done = unaffected(0, RATION_LOG="/dev/full")
    expect("stderr", done.err, "")


def fifo(folder):
    os.mkfifo(f"{folder}/fifo")
    unaffected(1, RATION_LOG=f"{folder}/fifo")


def removed_folder(folder):
    """The current folder was removed before the log is opened."""
    gone = pathlib.Path(folder) / "gone"
    gone.mkdir()
    environment = clean_environment() | LIMITED | {"LD_PRELOAD": LIBRARIES, "RATION_LOG": "run.jsonl",
                                                   "LD_LIBRARY_PATH": str(driver_folder("sim"))}
    done = subprocess.run(["sh", "-c", f'rmdir "{gone}" && exec "$0"', PROGRAMS / "linked_lazy"], cwd=gone, check=False,
                          env=environment, capture_output=True, text=True)
    expect("status, stdout", (done.returncode, done.stdout), (0, FILLED))


def file_size_limit(folder):
    """A write past RLIMIT_FSIZE would raise a signal: the log ends there with a whole line, and the program is unaffected."""
    # A granule of the simulated driver is a file, a slab is not.
    done = run("endings", "file_size", folder=folder, RATION_BACKING="slab", **LIMITED)
    expect("status, stderr", (done.status, done.err), (0, ""))
    size = (pathlib.Path(folder) / "run.jsonl").stat().st_size
    expect_that(f"{size} bytes", 4096 < size <= 8192)
    expect_that("nothing was recorded", len(of_type(done.logs["run.jsonl"], "alloc")) > 5)


def lowered_file_size_limit(how):
    """Lowered below the size that the log has, between two calls."""
    def case(folder):
        done = run("endings", how, folder=folder, RATION_BACKING="slab", **LIMITED)
        expect("status, stderr", (done.status, done.err), (0, ""))
        dropped = of_type(done.logs["run.jsonl"], "dropped")
        expect_that(f"dropped: {dropped}", len(dropped) == 1 and dropped[0]["count"] > 0)
    return case


def closed_descriptors(folder):
    """A daemon that closes every descriptor at its start must not close the log's."""
    environment = clean_environment() | LIMITED | {"LD_PRELOAD": LIBRARIES, "RATION_LOG": f"{folder}/run.jsonl",
                                                   "LD_LIBRARY_PATH": str(driver_folder("sim"))}
    done = subprocess.run(["sh", "-c", 'exec "$0" <&- 2>&-', PROGRAMS / "linked_lazy"], env=environment,
                          stdout=subprocess.PIPE, text=True, check=False)
    expect("status, stdout", (done.returncode, done.stdout), (0, FILLED))
    expect("allocations", len(of_type(read_log(pathlib.Path(folder) / "run.jsonl"), "alloc")), 10)


def placeholders(folder):
    done = run("linked_lazy", RATION_LOG=f"{folder}/run.jsonl-%n-%p-%%", **LIMITED)
    expect("stdout", done.out, FILLED)
    names = [path.name for path in pathlib.Path(folder).iterdir()]
    expect_that(f"{names}", len(names) == 1 and re.fullmatch(r"run\.jsonl-linked_lazy-\d+-%", names[0]))


main({
    "return from main": ending("return", 0, True),
    "exit": ending("exit", 0, True),
    "exit from another thread": ending("thread", 0, True),
    "_exit": ending("quick", 0, False),
    "abort": ending("abort", -signal.SIGABRT, False),
    "SIGKILL amid calls": ending("kill", -signal.SIGKILL, False),
    "return from main, no pool": ending("return", 0, True, RATION_MODE="direct"),
    "SIGKILL amid calls, no pool": ending("kill", -signal.SIGKILL, False, RATION_MODE="direct"),
    "two processes of one tree": two_processes,
    "a second image of one process": second_image,
    "the child of a user of CUDA": child_of_a_user,
    "what an earlier run left": earlier_log,
    "a folder that is not there": no_folder,
    "a folder in place of a file": a_folder,
    "a full disk": full_disk,
    "a FIFO": fifo,
    "a removed folder": removed_folder,
    "a file size limit": file_size_limit,
    "a file size limit that falls below the log's size": lowered_file_size_limit("setrlimit"),
    "the same, by prlimit": lowered_file_size_limit("prlimit"),
    "closed descriptors": closed_descriptors,
    "placeholders": placeholders,
} | ({} if SANITIZED else {  # ThreadSanitizer knows no join of that, and its own calls pass through the program's
    "the main thread ends first": ending("last", 0, True),
    "the main thread ends, natively": main_thread_ends("alone", "threads: 0", preload=None),
    "the main thread ends last": main_thread_ends("alone", "threads: 3"),
    "the main thread ends without a call": main_thread_ends("worker", "threads: 3"),
    "the main thread ends before the one that calls": main_thread_ends("before", "threads: 3", "afterwards: 0"),
}))
