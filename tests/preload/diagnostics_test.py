#!/usr/bin/env python3
"""RATION_DIAGNOSTICS: what the lines show, where they go, and that no program notices them (diagnostics.cc)."""
import os
import pathlib
import random
import re
import signal
import subprocess
import time

from harness import (BUILD, HANG, LIBRARIES, PROGRAMS, SANITIZED, command_environment, command_line, clean_environment, driver_folder, expect,
                     expect_that, main, run)

LINE = re.compile(r"ration(\[\d+\]: (info|debug|trace))?: \S.*")
LIMIT = {"RATION_LIMIT": "256MiB", "RATION_MODE": "pool", "SIMCUDA_DEVICES": "4GiB"}
KINDS = {
    "info": [r"setting RATION_LIMIT=256MiB \(environment\)", "mode pool serves", r"device 0 \(.*limit 268435456 of the process, no limit of its groups",
             "backing: device 0: .*first granule", "cuMemAlloc_v2 of 209715200 bytes is refused"],
    "debug": [r"hooks: \d+ of \d+ functions", "the pool of context 1 is made of granules", "the pool of context 1 grows by",
              r"\d+ free bytes go back to the driver", "reserves .* bytes of addresses"],
    "trace": ["hook cuMemAlloc_v2: resolved", r"takes a granule of \d+ bytes", r"releases \d+ bytes"],
}
LEVELS = ["off", "warn", "info", "debug", "trace"]


def whole(text):
    """The lines of a text that has whole ones only; blanks fill pages of a file."""
    expect_that(f"ends with a line: {text[-200:]!r}", not text or text.endswith("\n"))
    lines = [line for line in text.splitlines() if line.strip()]
    expect("lines that are none of Ration's", [line for line in lines if not LINE.fullmatch(line)][:3], [])
    return lines


def takes(**settings):
    done = run("diagnostics", "takes", **LIMIT | {"RATION_PREALLOCATE": "false"} | settings)
    expect(f"status with {settings}: {done.err}", done.status, 0)
    return done


def shown(level):
    """Each kind of decision at its level and the more detailed ones."""
    def case(_):
        text = takes(RATION_DIAGNOSTICS=level).err
        whole(text)
        for of, kinds in KINDS.items():
            for kind in kinds:
                expect(f"{kind} at {level}", bool(re.search(kind, text)), LEVELS.index(of) <= LEVELS.index(level))
        expect("levels", {match[1] for match in re.finditer(r"^ration\[\d+\]: (\w+):", text, re.M)} - set(LEVELS[:LEVELS.index(level) + 1]), set())
    return case


def preallocation(_):
    expect_that("a preallocation", "preallocated: the pool holds 268435456 bytes" in takes(RATION_PREALLOCATE="true", RATION_DIAGNOSTICS="info").err)


def warnings(_):
    """The lines at the default level, at every other one, and off."""
    def lenient(**settings):
        return run("diagnostics", "lacks", **LIMIT | {"RATION_HEADROOM": "much", "RATION_NONSENSE": "1"} | settings).err
    plain = lenient()
    expect("lines", plain.count("\n"), 2)
    expect("warn", lenient(RATION_DIAGNOSTICS="warn"), plain)
    expect("off", lenient(RATION_DIAGNOSTICS="off"), "")
    for level in LEVELS[2:]:
        expect(level, "".join(line for line in lenient(RATION_DIAGNOSTICS=level).splitlines(True) if line.startswith("ration: ")), plain)
    expect_that("a wrong level", "it must be one of off, warn, info, debug, trace" in lenient(RATION_DIAGNOSTICS="loud"))


def beside(how, folder, status, **more):
    """What a newcomer and the process that was there before it say."""
    settings = LIMIT | {"RATION_DIAGNOSTICS": "debug", "RATION_GROUP": "both", "RATION_GROUP_LIMIT": "256MiB", "RATION_STATE_DIR": f"{folder}/state",
                        "RATION_PREALLOCATE": "false", "SIMCUDA_MACHINE": f"{folder}/machine"}
    with started(how, **settings) as holder:
        expect("the holder", holder.stdout.readline(), "holds\n")
        newcomer = run("diagnostics", "lacks", **settings | more)
        held = holder.communicate(timeout=HANG)[1]
    expect(f"the newcomer: {newcomer.err}", newcomer.status, status)
    whole(newcomer.err + held)
    return newcomer.err, held


def waits(folder):
    text, _ = beside("uses", folder, 1, RATION_WAIT="100ms")
    expect_that(text, re.search(r"cuMemAlloc_v2 waited \d{5,} microseconds \(members\)", text))
    expect_that(text, "is refused (group)" in text)


def groups(folder):
    """A newcomer asks for what another process holds and does not use."""
    text, held = beside("holds", folder, 0)
    for kind in ("group 'both' is joined in ", r"bytes are lacking; \d+ other processes are asked", "limit 268435456 of its groups"):
        expect_that(f"{kind} in {text}", re.search(kind, text))
    expect_that(f"the wish in {held}", re.search(r"another process lacks \d+ bytes; \d+ are given back", held))


def environment_of(settings):
    child = clean_environment() | {"DRIVER_FOLDER": str(driver_folder("sim")), "LD_PRELOAD": LIBRARIES}
    child["LD_LIBRARY_PATH"] = f"{driver_folder('sim')}:{PROGRAMS}:{BUILD}/lib/ration/sim"
    return child | {key: str(value) for key, value in settings.items()}


def started(*arguments, stderr=subprocess.PIPE, **settings):
    return subprocess.Popen(command_line("diagnostics", arguments), env=environment_of(settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=stderr, text=True)


def ended(*arguments, stderr, **settings):
    with started(*arguments, stderr=stderr, **LIMIT | {"RATION_DIAGNOSTICS": "trace"} | settings) as process:
        process.communicate(timeout=HANG)
    return process.returncode


def forks(folder):
    """Eight threads that fork: each line is whole, on a pipe as in a file."""
    lines = whole(run("diagnostics", "forks", **LIMIT | {"RATION_DIAGNOSTICS": "trace"}).err)
    expect("processes on stderr", len({line.split("]")[0] for line in lines}), 49)
    file = pathlib.Path(folder) / "diagnostics"
    done = run("diagnostics", "forks", **LIMIT | {"RATION_DIAGNOSTICS": f"trace:{file}"})
    expect("status and stderr", (done.status, done.err), (0, ""))
    expect("processes in the file", len({line.split("]")[0] for line in whole(file.read_text())}), 49)


def without_a_reader(_):
    ours, theirs = os.pipe()
    os.close(ours)
    expect("status", ended("takes", stderr=theirs, RATION_PREALLOCATE="false"), 0)
    os.close(theirs)


def full(_):
    with open("/dev/full", "wb") as disk:
        expect("on stderr", ended("takes", stderr=disk, RATION_PREALLOCATE="false"), 0)
    expect("in a file", takes(RATION_DIAGNOSTICS="trace:/dev/full").err, "")
    expect("a warning is not lost", "RATION_HEADROOM=much" in takes(RATION_DIAGNOSTICS="trace:/dev/full", RATION_HEADROOM="much").err, True)


def number_two(folder):
    """Nothing is written to a file that has the number of standard error."""
    for how in ("reuses", "reuses_before"):
        file = pathlib.Path(folder) / how
        expect(f"{how}: status", run("diagnostics", how, file, **LIMIT | {"RATION_DIAGNOSTICS": "trace"}).status, 0)
        expect(f"{how}: its file", file.read_bytes(), b"")
    settings = environment_of(LIMIT | {"RATION_DIAGNOSTICS": "trace"})
    done = subprocess.run(["sh", "-c", 'exec "$0" takes 2>&-', PROGRAMS / "diagnostics"], env=settings | {"RATION_PREALLOCATE": "false"}, timeout=HANG, check=False)
    expect("closed from the start: status", done.returncode, 0)


def closed_file(folder):
    """A program that closes all files loses no line, and gets none into its own."""
    file, own = pathlib.Path(folder) / "diagnostics", pathlib.Path(folder) / "own"
    expect("status", run("diagnostics", "closes_files", own, **LIMIT | {"RATION_DIAGNOSTICS": f"info:{file}"}).status, 0)
    expect("its file", own.read_bytes(), b"")
    expect_that("the last decision", "is refused" in whole(file.read_text())[-1])


def files(folder):
    """A file is added to; what is not a regular file, or a link, is refused, and the lines go to stderr."""
    file, link, fifo = (pathlib.Path(folder) / name for name in ("plain", "link", "fifo"))
    file.write_text("before\n")
    link.symlink_to(file)
    os.mkfifo(fifo)
    expect("stderr", takes(RATION_DIAGNOSTICS=f"info:{file}").err, "")
    expect_that("the file goes on", file.read_text().startswith("before\nration["))
    size = file.stat().st_size
    for path, why in ((link, "a symbolic link"), (fifo, "No such device or address"), (f"{folder}/none/a", "No such file or directory")):
        text = takes(RATION_DIAGNOSTICS=f"info:{path}").err
        expect_that(text, text.startswith(f"ration: no diagnostics in {path}: {why}; they go to standard error\nration["))
    expect("what the link leads to", file.stat().st_size, size)


def killed(folder):
    """SIGKILL leaves whole lines in a file."""
    draw = random.Random()
    file = pathlib.Path(folder) / "diagnostics"
    for _ in range(30):
        with started("lasts", stderr=subprocess.DEVNULL, **LIMIT | {"RATION_DIAGNOSTICS": f"trace:{file}"}) as process:
            wanted = (file.stat().st_size if file.exists() else 0) + draw.randrange(1, 60000)
            while process.poll() is None and (not file.exists() or file.stat().st_size < wanted):
                time.sleep(0)
            expect("it runs until it is killed", process.poll(), None)
            process.kill()
            process.communicate()
        expect("ended by", process.returncode, -signal.SIGKILL)
        whole(file.read_text())


def ration(*arguments, **settings):
    return subprocess.run([BUILD / "bin/ration", *arguments], env=command_environment() | settings, capture_output=True, text=True, timeout=HANG,
                          check=False)


def verbose_run(_):
    """`ration run -v`, and -v before the verb: the command's decisions, and the library's."""
    line = ("run", "-q", "--sim", "1GiB", "--limit", "256MiB", "--", PROGRAMS / "diagnostics", "lacks")
    expect("without", ration(*line).stderr, "")
    for words in (("-v", *line), ("--verbose", *line), ("run", "-v", *line[1:]), ("run", "--verbose", *line[1:])):
        done = ration(*words)
        expect(f"status: {done.stderr}", done.returncode, 0)
        whole(done.stderr)
        for kind in (r"setting RATION_LIMIT=256MiB \(flag\)", "a limit holds", f"the library is {BUILD}/lib/libration.so", f"the command is {PROGRAMS}/diagnostics",
                     "the command gets LD_PRELOAD=", "hooks: "):
            expect_that(f"{kind} in {done.stderr}", re.search(kind, done.stderr))
        expect("what is between our own parts", "RATION_FLAGS" in done.stderr, False)
    expect("the library's own setting holds", "hooks: " in ration("-v", *line, RATION_DIAGNOSTICS="info").stderr, False)
    expect("not by the command's option alone", ration(*line, RATION_DIAGNOSTICS="warn").stderr, "")
    grouped = ration("run", "-v", "-q", "--sim", "1GiB", "--group", "g", "--group-limit", "512MiB", "--guarantee", "256MiB", "--", "true").stderr
    expect_that(grouped, "group 'g' is joined in " in grouped and re.search(r"device 0: the command may take \d+ of 1073741824 bytes, and needs 268435456", grouped))


def verbose_verbs(_):
    expect_that("the state folder", "the state folder is " in ration("-v", "ps").stderr)
    expect("without", "the state folder is " in ration("ps").stderr, False)
    expect("after another verb", ration("ps", "-v").returncode, 2)


main({f"at level {level}": shown(level) for level in LEVELS}
     | {"a preallocation": preallocation, "warnings": warnings, "two in a group": groups, "a wait": waits, "without a reader": without_a_reader,
        "a full disk": full, "a file in the place of standard error": number_two, "a closed file": closed_file, "which files": files, "killed": killed,
        "ration run -v": verbose_run, "ration -v": verbose_verbs}
     # A child that was forked amid another thread's allocation inherits AddressSanitizer's lock (clang 14), and waits for it for ever.
     | ({} if SANITIZED else {"forks in eight threads": forks}))
