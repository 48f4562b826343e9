#!/usr/bin/env python3
"""Messages of Ration's to a standard error that takes none: the program must not end by them. Of the command's own
output no error is passed over."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "preload"))
from harness import BUILD, HANG, LIBRARIES, LIBRARY, PROGRAMS, SANITIZED, clean_environment, driver_folder, expect, expect_that, main  # noqa: E402

STEPS = [str(PROGRAMS / "steps"), "init", "context=0", "alloc=1m"]
UNSET = "import os, sys; del os.environ['LD_' + 'PRELOAD']; os.execv(sys.argv[1], sys.argv[1:])"
COMMAND = str(BUILD / "bin/ration")
LARGEST_FILE = 1 << 40


def environment(folder, libraries, **settings):
    state = pathlib.Path(folder) / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    simulated = str(driver_folder("sim"))
    return clean_environment() | {"LD_LIBRARY_PATH": simulated, "RATION_STATE_DIR": str(state),
                                  **({"LD_PRELOAD": libraries} if libraries else {}), **settings}


def no_reader():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def at_the_size_limit():
    stderr = os.memfd_create("stderr")
    os.lseek(stderr, LARGEST_FILE, os.SEEK_SET)
    return stderr


def no_more_bytes():
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


def status(command, variables, stderr, limited):
    # Python ignores both signals; the program gets them as it would from a shell.
    done = subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, stderr=stderr, timeout=HANG, check=False,
                          restore_signals=True, preexec_fn=no_more_bytes if limited else None)
    os.close(stderr)
    return done.returncode


def said(command, variables):
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=HANG, check=False)


def quiet(command, libraries, **settings):
    """With each standard error the command ends as with one that takes what it says."""
    def case(folder):
        where = libraries(folder) if callable(libraries) else libraries
        variables = environment(folder, where, **settings)
        plain = said(command, variables)
        expect_that(f"something is said: {plain.stderr!r}", "ration: " in plain.stderr)
        expect("without a reader", status(command, variables, no_reader(), False), plain.returncode)
        # A granule of the simulated driver is a file, which the limit is for.
        expect("at the size limit", status(command, variables | {"RATION_BACKING": "slab"}, at_the_size_limit(), True), plain.returncode)
    return case


def without_core(folder):
    """Only the part that is loaded first: it refuses every allocation, and says why."""
    alone = pathlib.Path(folder) / "alone"
    alone.mkdir(exist_ok=True)
    shutil.copy(LIBRARY, alone)
    return LIBRARIES.replace(str(LIBRARY), str(alone / LIBRARY.name))


def printed(*arguments):
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=HANG, check=False)
    return done.returncode, done.stdout


def complains(arguments, variables, stdout, limited):
    """The command's output cannot be written: the documented status, and a line that says why."""
    done = subprocess.run([COMMAND, *arguments], env=variables, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=HANG,
                          check=False, preexec_fn=no_more_bytes if limited else None)
    os.close(stdout)
    expect(f"status, having said {done.stderr!r}", done.returncode, 125)
    expect_that(f"a line says why: {done.stderr!r}", done.stderr.count("cannot write") == 1 and done.stderr.startswith("ration: "))


def unwritten(arguments, variables):
    complains(arguments, variables, os.open("/dev/full", os.O_WRONLY), False)
    complains(arguments, variables, at_the_size_limit(), True)


def full(*arguments):
    return lambda folder: unwritten(arguments, environment(folder, ""))


def full_with_rows(*arguments):
    """As long as a process runs under Ration here, there is something to print."""
    def case(folder):
        variables = environment(folder, LIBRARIES, RATION_GROUP="g", RATION_GROUP_LIMIT="1GiB")
        with subprocess.Popen([STEPS[0], "obey"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              bufsize=1) as member:
            for op in STEPS[1:]:
                member.stdin.write(op + "\n")
                expect("the member", member.stdout.readline(), f"{op}: 0\n")
            unwritten(arguments, environment(folder, ""))
    return case


def gone_reader(folder):
    """`ration ... | head` ends as other commands of a pipe do, without a word."""
    for arguments in (("env",), ("env", "--files"), ("ps", "--json"), ("doctor", "--coverage"), ("help",)):
        closed = no_reader()
        done = subprocess.run([COMMAND, *arguments], env=environment(folder, ""), stdout=closed, stderr=subprocess.PIPE,
                              timeout=HANG, check=False, restore_signals=True)
        os.close(closed)
        expect(f"{arguments}: status and standard error", (done.returncode, done.stderr), (-signal.SIGPIPE, b""))


def command_keeps_its_signals(_):
    """What the command ignores itself a program that it runs does not."""
    done = subprocess.run([COMMAND, "run", "--", "grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True,
                          timeout=HANG, check=False)
    ignored = int(done.stdout.split()[1], 16)
    expect(f"signals ignored: {ignored:x}", ignored & (1 << (signal.SIGXFSZ - 1)), 0)


def summed_up(*command):
    """That nothing was limited is said where a limit was asked for, also if the program used CUDA without Ration."""
    def case(folder):
        for option in ("--limit=1GiB", "--group-tree=1GiB", "--reserve=1GiB"):
            done = said([COMMAND, "run", "--sim", "2GiB", option, "--", *command], environment(folder, ""))
            expect(f"{option}: status", done.returncode, 0)
            expect("the summary", done.stderr, "ration: saw no CUDA calls. A process that lost LD_PRELOAD was not limited\n")
    return case


def silent(folder):
    """Nothing is said of a program without CUDA that ran no other: no process of it can have lost LD_PRELOAD."""
    for option in ("--limit=1GiB", "--group-tree=1GiB", "--reserve=1GiB"):
        done = said([COMMAND, "run", "--sim", "2GiB", option, "--", "true"], environment(folder, ""))
        expect(f"{option}: status and standard error", (done.returncode, done.stderr), (0, ""))


def without_driver(folder):
    """Nor can it have been limited where no driver can be loaded: that is said instead."""
    libraries = pathlib.Path(folder) / "libraries"
    libraries.mkdir()
    (libraries / "libcuda.so.1").touch()  # the dynamic linker takes no empty file, and looks no further
    done = said([COMMAND, "run", "--limit=1GiB", "--", "sh", "-c", "true; ls; true"], environment(folder, "", LD_LIBRARY_PATH=str(libraries)))
    expect("status and standard error", (done.returncode, done.stderr),
           (0, "ration: saw no CUDA calls: there is no CUDA driver here (libcuda.so.1). --sim 8GiB simulates a GPU\n"))


def unheard(folder):
    """That a program's figures are missing, and why, is said where it may not write them; its limit holds."""
    program = [COMMAND, "run", "--limit=100MiB", "--", "env", "RATION_SUMMARY=/dev/null", *STEPS, "alloc=200m"]
    done = said(program, environment(folder, ""))
    expect("status", done.returncode, 0)
    first, second, *rest = done.stderr.splitlines()
    expect_that(f"the cause: {first}", re.fullmatch(r"ration: no figures for the summary of ration run: \S+: Not a directory", first))
    expect_that(f"the summary: {second} {rest}", "saw no CUDA calls" in second and not rest)
    expect_that(f"the limit: {done.stdout}", "alloc=200m: 2" in done.stdout)


def incomplete_log(folder):
    """That a log lacks records is said at the run's end: the log itself cannot say so on a full disk."""
    done = said([COMMAND, "run", "--sim", "1GiB", *STEPS], environment(folder, "", RATION_LOG="/dev/full"))
    expect("status", done.returncode, 0)
    expect_that(f"the summary: {done.stderr}", re.search(r"ration: the log is incomplete: \d+ records? could not be written: ", done.stderr))


def nul_behind(folder):
    """JSON followed by a NUL is refused in words: by the command, and by the library, which then doubts the limit."""
    path = pathlib.Path(folder) / "ration.json"
    path.write_bytes(b'{"limit": "1GiB"}\0')
    for arguments in (("env", "--check", str(path)), ("run", "true")):
        done = said([COMMAND, *arguments], environment(folder, "", RATION_CONFIG=str(path)))
        expect(f"status, having said {done.stderr!r}", done.returncode, 125)
        expect_that(f"in words: {done.stderr!r}", "ration.json:1:18: " in done.stderr and "there is a NUL byte" in done.stderr)
    done = said(STEPS, environment(folder, LIBRARIES, RATION_CONFIG=str(path)))
    expect_that(f"in words: {done.stderr!r}", "there is a NUL byte; until it is corrected, the limit is 75%" in done.stderr)


def raw_command(folder):
    """A command's name in a message of the command's own, too, and in one of the library's."""
    for arguments in (("run", "--", "./\x1b[31m\nration: forged"), ("\x1b[31m\nration: forged",)):
        done = said([COMMAND, *arguments], environment(folder, ""))
        line, = done.stderr.splitlines()
        expect_that(f"escaped: {line!r}", "\\x1b[31m" in line and "ration: forged" in line)
    done = said(STEPS, environment(folder, LIBRARIES, RATION_MODE="\x1b[31m\nration: forged"))
    expect_that(f"escaped: {done.stderr!r}", "\x1b" not in done.stderr and "\nration: forged" not in done.stderr)


def own_lock(folder):
    """A lock in the user's own file is a mistake to the check as well: it does not hold. In a folder that has the file
    `enforced`, as the system's may, the same file has none."""
    (pathlib.Path(folder) / "enforced").touch()
    home = pathlib.Path(folder) / "home"
    path = home / "ration/config.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"limit": "1GiB", "locked": ["limit"]}')
    for checked, status in ((path, 125), (pathlib.Path(shutil.copy(path, folder)), 0)):
        done = said([COMMAND, "env", "--check", str(checked)], environment(folder, "", XDG_CONFIG_HOME=str(home)))
        expect(f"{checked}: status, having said {done.stderr!r}", done.returncode, status)
        expect("in words", "only a file in the system folder can lock" in done.stderr, status != 0)


def raw_name(folder):
    """A program's name reaches the terminal only in printable characters."""
    named = pathlib.Path(folder) / "\x1b[31mred\nration: forged"
    shutil.copy(PROGRAMS / "steps", named)
    done = said([COMMAND, "run", "--sim", "1GiB", str(named), *STEPS[1:]], environment(folder, ""))
    expect("status", done.returncode, 0)
    expect_that(f"printable: {done.stderr!r}", all(" " <= c <= "~" or c == "\n" for c in done.stderr))
    expect_that(f"no line is forged: {done.stderr!r}", "\nration: forged" not in done.stderr and "\\x1b[31mred" in done.stderr)


main({
    "what the library says about a setting ends no program": quiet(STEPS, LIBRARIES, RATION_LIMIT="1parsec"),
    "what it says without its core ends no program": quiet(STEPS, without_core),
    "the summary does not end `ration run`": quiet([COMMAND, "run", "--sim", "1GiB", *STEPS], ""),
    "help to a full standard output": full("--help"),
    "help of a verb to a full standard output": full("run", "--help"),
    "help by its verb": lambda _: expect("help run", printed("help", "run"), printed("run", "--help")),
    "help alone": lambda _: expect("help", printed("help"), printed("--help")),
    "help of no verb": lambda _: expect("help nothing", printed("help", "nothing")[0] != 0, True),
    "version to a full standard output": full("--version"),
    "help by its verb to a full standard output": full("help", "run"),
    "env to a full standard output": full("env"),
    "env --json to a full standard output": full("env", "--json"),
    "ps to a full standard output": full_with_rows("ps"),
    "ps --watch --json to a full standard output": full_with_rows("ps", "--watch", "--json"),
    "ps --json to a full standard output": full("ps", "--json"),
    "ps --prometheus to a full standard output": full("ps", "--prometheus"),
    "env --files to a full standard output": full("env", "--files"),
    "doctor to a full standard output": full("doctor", "--coverage"),
    "doctor --json to a full standard output": full("doctor", "--coverage", "--json"),
    "a reader of the command's output that is gone": gone_reader,
    "a command inherits no ignored signal": command_keeps_its_signals,
    "a limit that nothing met": summed_up("sh", "-c", "true; ls; true"),
    "a program without CUDA": silent,
    "a machine without a driver": without_driver,
    "a limit that a child without LD_PRELOAD did not meet": summed_up(sys.executable, "-c", UNSET, *STEPS),
    "a log that lacks records": incomplete_log,
    "JSON followed by NUL": nul_behind,
    "a name with control characters": raw_name,
    "a command with control characters": raw_command,
    "a lock in the user's own file": own_lock,
} | ({} if SANITIZED else {"a program that may not write its figures": unheard}))  # env loads no sanitizer's runtime
