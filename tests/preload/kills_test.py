#!/usr/bin/env python3
"""SIGKILL at random moments under `ration run --log`: every line of every log is whole, and every call that had returned is
there: kills_test.py KILLS [SEED]."""
import csv
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import BUILD, PROGRAMS, SANITIZED, command_environment, expect, expect_ended, expect_that, main

KILLS = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
RATION = BUILD / "bin/ration"
EXTRA = {"none": (), "parts": ("--log-size", "1MiB"), "stacks": ("--stacks", "native")}


def returned(counts, threads):
    """The calls of each thread that have returned by now."""
    try:
        content = counts.read_bytes()
    except FileNotFoundError:
        content = b""
    content = content.ljust(8 * threads, b"\0")
    return [int.from_bytes(content[8 * i:8 * i + 8], "little") for i in range(threads)]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_and_kill(draw, folder, log, threads, options):
    """Whom the signal meets, and when, is drawn; in the end nobody is left."""
    counts = folder / "counts"
    most = 9000 if "--log-size" in options else draw.choice((30, 300, 3000))
    wanted = draw.randrange(most)
    order = draw.choice(("program", "program", "ration", "both", "program, then ration"))
    pause = draw.randrange(3000)
    with subprocess.Popen([RATION, "run", "--sim", "2GiB", "--log", log, *options, "--", "sh", "-c", 'echo $$; exec "$0" counts "$1" 0',
                           PROGRAMS / "counted", str(threads)], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=command_environment(), text=True) as run:
        program = int(run.stdout.readline())
        while sum(returned(counts, threads)) < wanted and run.poll() is None:
            pass
        expect_that("the program runs until it is killed", run.poll() is None)
        if order == "ration":
            run.kill()
            sum(range(pause))
        kill(program)
        if order == "both":
            run.kill()
        if order == "program, then ration":
            sum(range(pause))
            run.kill()
        run.wait()
        expect_ended(program)
    return order


def records_of(folder, log):
    """By the reader of `ration`, which accepts whole logs only."""
    done = subprocess.run([RATION, "convert", log, "--to", "csv"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == 2 and any(why in done.stderr for why in ("No such file", "it is empty")):
        return []
    expect(f"status, {done.stderr!r}", done.returncode, 0)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def logged(records, threads):
    """The calls of each thread that the log has: of what it begins in the middle of, by the number in the last size."""
    calls, owner = [None] * threads, {}
    for record in records:
        if record["t"] == "alloc":
            thread, number = (int(record["req"]) >> 22) - 1, int(record["req"]) & ((1 << 22) - 1)
            expect_that(f"{record} follows the last", calls[thread] in (None, 2 * number - 2))
            calls[thread] = 2 * number - 1
            owner[record["addr"]] = thread
        elif record["t"] == "free" and record["addr"] in owner:
            calls[owner.pop(record["addr"])] += 1
    return calls


def check_logs(folder, log, threads):
    plain = [path for path in folder.glob("run.jsonl*") if path.suffix != ".zst"]
    for path in plain:
        text = path.read_text()
        expect_that(f"{path.name} ends with a line", text == "" or text.endswith("\n"))
        for line in text.splitlines():
            json.loads(line)
    records = records_of(folder, log)
    begins = int(records[0]["seq"]) == 1 if records else True
    seen = logged(records, threads)
    for thread, (made, of_log) in enumerate(zip(returned(folder / "counts", threads), seen)):
        if of_log is None and not begins:
            continue  # it made no call since the parts that are left
        expect_that(f"thread {thread}: {made} calls had returned, the log has {of_log}", made <= (of_log or 0) <= made + 1)
    return sum(call or 0 for call in seen), not begins


def one(draw):
    extra = draw.choice(list(EXTRA))
    log = draw.choice(("run.jsonl", "run.jsonl.zst"))
    mode = draw.choice(("pool", "async", "direct"))
    threads = draw.randrange(1, 5)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-kills-"))
    try:
        order = run_and_kill(draw, folder, log, threads, (*EXTRA[extra], "--mode", mode))
        calls, cut = check_logs(folder, log, threads)
        return {order, extra, mode, log} | ({"called"} if calls else set()) | ({"in parts"} if cut else set()) | (
            {"compressed"} if (folder / "run.jsonl.zst").exists() else set())
    except BaseException:
        print(f"{log} {extra} {mode}, {threads} threads: {folder} is kept")
        raise
    finally:
        if sys.exc_info()[0] is None:
            shutil.rmtree(folder)


def kills(_):
    print(f"seed {SEED}")
    met = {}
    for round_number in range(KILLS):
        for what in one(random.Random(SEED + round_number)):
            met[what] = met.get(what, 0) + 1
    print(f"{KILLS} kills: {dict(sorted(met.items()))}")
    if KILLS >= 100 and not SANITIZED:
        wanted = ["program", "ration", "both", "program, then ration", *EXTRA, "pool", "async", "direct", "called", "in parts", "compressed"]
        expect("never met", [what for what in wanted if what not in met], [])


main({"kills": kills})
