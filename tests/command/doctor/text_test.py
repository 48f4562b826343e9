#!/usr/bin/env python3
"""How `ration doctor` says what it found: in order, at three widths of a terminal, as JSON; and that it leaves no trace."""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import termios

from planting import (BUILD, INTERPOSER, LIBRARIES, PROBE, RATION, SIMULATOR, NotHere, doctor, environment, expect, expect_that, in_namespaces, running, steps,
                      table)
from harness import HANG, main

TROUBLES = {"RATION_LIMIT": "much", "RATION_LIMT": "1GiB", "RATION_LOG_SIZE": "4MiB", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=1G"}


def ration(*arguments, status=0, stdout=subprocess.PIPE, **more):
    done = subprocess.run([RATION, *arguments], env=environment(**more), stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                          text=True, timeout=HANG, check=False)
    expect(f"status of {arguments}, {done.stdout}{done.stderr}", done.returncode, status)
    return done


def healthy(_):
    for arguments in ([], ["--", PROBE, "preload"]):
        text = ration("run", "--sim", "8GiB", "--limit", "2GiB", RATION, "doctor", *arguments, LD_LIBRARY_PATH=None, SIMCUDA_DEVICES=None).stdout
        expect("the last line", text.splitlines()[-1].split(",")[0], "no trouble")
        expect_that(text, not re.search("^trouble ", text, re.M) and "8.00GiB, limit 2.00GiB (device)" in text)
        for name in ("installation", "driver", "device", "nvml", "settings", "preload", "hooks", "state_folder", "shared_memory"):
            expect_that(f"{name} is well in {text}", f"({name})\n" in text)


def of_a_run(_):
    """The options of `ration run` are taken as that run takes them."""
    bare = {"LD_LIBRARY_PATH": None, "SIMCUDA_DEVICES": None}
    for command in ([], ["--", PROBE, "preload"]):
        text = ration("doctor", "--sim", "8GiB", "--limit", "2GiB", "--group", "lab", *command, **bare).stdout
        expect_that(text, not re.search("^trouble ", text, re.M) and "8.00GiB, limit 2.00GiB (device)" in text and "--group" not in text)
    lost = ration("doctor", "--sim=8GiB", "--limit=2GiB", "--", "env", "-u", "RATION_LIMIT", PROBE, status=0, **bare).stdout
    expect_that(lost, "env unsets RATION_LIMIT (command_changes_settings)" in lost)
    expect("a wrong size", ration("doctor", "--sim", "much", status=2).stderr.count("\n"), 1)


def found_by_loader(folder):
    """Entries that only the loader of the program can make files of."""
    folder = pathlib.Path(folder)
    for path in ("bin", "lib"):
        (folder / path).mkdir()
    shutil.copy(PROBE, folder / "bin/program")
    (folder / "program").symlink_to("bin/program")
    for name in ("libration.so", "libration-core.so"):
        shutil.copy(BUILD / "lib" / name, folder / "lib" / name)
    for name in ("lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "x86_64", "haswell", "xeon_phi", "aarch64"):
        (folder / name).symlink_to(folder / "lib")
    found = {"LD_LIBRARY_PATH": f"{folder}/lib:{SIMULATOR}"}
    for entry, settings in (("libration.so", found), (f"{folder}/$LIB/libration.so", {}), (f"{folder}/${{PLATFORM}}/libration.so", {}),
                            ("$ORIGIN/../lib/libration.so", {})):
        for program in (folder / "bin/program", folder / "program"):
            for answer in (doctor("--", program, LD_PRELOAD=entry, **settings), doctor("--", "env", f"LD_PRELOAD={entry}", program, **settings)):
                expect(f"{entry} is loaded: {answer.text}", ([each["id"] for each in answer.findings if each["severity"] == "trouble"],
                                                             [f"has {entry}" in each["what"] for each in answer.of("preload")]), ([], [True]))
    expect("without a program", doctor(LD_PRELOAD="libration.so", **found).status, 0)
    expect("in no folder of the program", [each["id"] for each in doctor("--", "env", "LD_PRELOAD=$ORIGIN/libration.so", PROBE).findings
                                           if each["severity"] == "trouble"], ["preload_gone"])
    doctor(LD_PRELOAD="$ORIGIN/../lib/libration.so").expect("unchecked", "whose folder differs from program to program", remedy="ration doctor -- COMMAND")
    shutil.copy(INTERPOSER, folder / "lib")
    doctor(LD_PRELOAD=f"{INTERPOSER.name}:libration.so", **found).expect("preload_interposer_first", f"{INTERPOSER.name} comes before")


def healthy_process(_):
    with running(*steps("load", "init", "alloc"), LD_PRELOAD=LIBRARIES, RATION_LIMIT="1GiB", RATION_GROUP="lab") as pid:
        answer = doctor("--pid", pid)
        held, = answer.of("process")
        expect_that(held["what"], re.search(rf"^process {pid} \(.*\) is held: group lab, \d+MiB reserved, limit now 1.00GiB", held["what"]))
        asked, = answer.of("process_settings")
        expect_that(asked["what"], all(part in asked["what"] for part in ("LD_PRELOAD=", "RATION_LIMIT=1GiB", "RATION_GROUP=lab")))
        how, = answer.of("process_diagnostics")
        expect_that(how["what"], "RATION_DIAGNOSTICS=debug" in how["what"] and "`ration run -v`" in how["what"])
        expect("status", (answer.status, answer.of("process_not_in_books"), answer.of("limit_none")), (0, [], []))


def counted_process(_):
    """A process without a limit is not called held."""
    with running(*steps("load", "init", "alloc"), LD_PRELOAD=LIBRARIES) as pid:
        answer = doctor("--pid", pid)
        shown, = answer.of("process")
        expect_that(shown["what"], "is counted, no limit is set: no group, " in shown["what"])


def in_a_container(_):
    """A process with its own /dev/shm is looked up in the books there; what is missing here is no trouble of its."""
    try:
        wrapper = in_namespaces("--mount", "--pid", "--fork", "--mount-proc", script="mount -t tmpfs none /dev/shm")
    except NotHere as why:
        print(f"not permitted here: {why}")
        return
    with running(*wrapper, *steps("load", "init", "alloc"), LD_PRELOAD=LIBRARIES, RATION_GROUP="lab", RATION_STATE_DIR=None) as pid:
        inner, = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        answer = doctor("--pid", inner, LD_LIBRARY_PATH="/nowhere")
        expect_that(answer.findings, answer.of("process_other_namespace") and answer.of("process")
                    and "held: group lab" in answer.of("process")[0]["what"])
        expect("status", (answer.status, answer.of("driver_missing")), (0, []))


def in_order(_):
    answer = doctor(**TROUBLES)
    expect_that(answer.findings, all(sorted(each) == ["id", "remedy", "severity", "what"] for each in answer.findings))
    order = [each["severity"] for each in answer.findings]
    expect("order", order, sorted(order, key=["trouble", "note", "ok"].index))
    expect("kinds", [order.count("trouble"), "note" in order, "ok" in order], [3, True, True])
    expect("severities", order, [table()[each["id"]][0] for each in answer.findings])
    expect("only what is well has no remedy", {each["severity"] for each in answer.findings if not each["remedy"]}, {"ok"})
    lines = []
    for each in answer.findings:
        lines.append(f"{each['severity']:<9}{each['what']} ({each['id']})")
        lines += [f"         -> {each['remedy']}"] if each["remedy"] else []
    notes = order.count("note")
    lines.append(f"3 troubles, {notes} note{'s' if notes != 1 else ''}, {order.count('ok')} ok")
    expect("text", answer.text.splitlines(), lines)
    document = json.loads(ration("doctor", "--json", status=1, **TROUBLES).stdout)
    expect("document", [document["schema"], document["troubles"], document["notes"]], ["ration.doctor/1", 3, notes])


def on_terminal(columns, *arguments):
    """What is printed on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    with subprocess.Popen([RATION, *arguments], env=environment(**TROUBLES), stdin=theirs, stdout=theirs, stderr=subprocess.STDOUT) as process:
        os.close(theirs)
        try:
            while some := os.read(ours, 65536):
                shown += some
        except OSError:  # its end
            pass
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


def joined(lines):
    """The sentences of wrapped text: a line that begins with blanks, and no remedy, goes on."""
    sentences = []
    for line in lines:
        if line.startswith("         ") and not line.startswith("         ->"):
            sentences[-1] += " " + line.strip()
        else:
            sentences.append(line)
    return sentences


def widths(_):
    wanted = doctor(**TROUBLES).text.splitlines()
    for columns in (60, 80, 120):
        status, text = on_terminal(columns, "doctor")
        lines = text.splitlines()
        expect("status", status, 1)
        # A device without a machine has another UUID in each process.
        same = [re.sub("GPU-[0-9a-f-]+", "GPU", line) for line in joined(lines)]
        expect(f"sentences at {columns}", same, [re.sub("GPU-[0-9a-f-]+", "GPU", line) for line in wanted])
        for line in lines:
            rest = re.sub(r"^(\w+|) +(-> )?", "", line)
            expect_that(f"{line!r} is longer than {columns}", len(line) <= columns or " " not in rest)
        expect_that(f"the lines fill {columns}", max(map(len, lines)) > columns - 20)


def coverage_widths(_):
    rows = json.loads(ration("doctor", "--coverage", "--json").stdout)
    for columns in (60, 80, 120):
        status, text = on_terminal(columns, "doctor", "--coverage")
        expect("status", status, 0)
        head, _, body = text.partition("\n\n")
        lines, (covered, gaps, *legend) = body.splitlines(), head.splitlines()
        expect(f"legend longer than {columns}", [line for line in legend if len(line) > columns], [])
        expect("as COLUMNS asks", ration("doctor", "--coverage", COLUMNS=columns).stdout, text)
        expect("totals", (covered, gaps), (f"covered: {rows['covered']} of {rows['of']}", f"gaps: {rows['gaps']}"))
        expect("exports", sorted(line for line in lines if not line.startswith(" ")), sorted(row["export"] for row in rows["rows"] + rows["also_hooked"]))
        expect(f"lines longer than {columns}", [line for line in lines if len(line) > columns and " " in line.strip()], [])
        whole = " ".join(" ".join(line.split()) for line in lines)
        for row in rows["rows"]:
            expect_that(f"{row} is in the text", row["sentence"] in whole)


def no_trace(folder):
    state, scratch = pathlib.Path(folder) / "state", pathlib.Path(folder) / "scratch"
    scratch.mkdir()
    answer = doctor("--", PROBE, RATION_STATE_DIR=state, TMPDIR=scratch)
    ok, = answer.of("state_folder")
    expect_that(ok, "made by the first program that needs it" in ok["what"])
    expect("what is left", (state.exists(), list(scratch.iterdir())), (False, []))


def is_not_started(folder):
    script = pathlib.Path(folder) / "script"
    script.write_text(f"#!/bin/sh\ntouch {folder}/started\n")
    script.chmod(0o755)
    found, = doctor("--", script).of("command")
    expect_that(found, found["what"].startswith("touch: "))
    expect("it was started", (pathlib.Path(folder) / "started").exists(), False)


def hint_at_a_command(_):
    for word in (PROBE, "run.jsonl"):
        said = ration("doctor", word, status=2).stderr
        expect_that(said, said.endswith("; write a command after --, and see `ration report` for a log\n"))


def full_disk(_):
    for more in ([], ["--json"], ["--", "ls"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            said = ration("doctor", *more, status=125, stdout=full).stderr
            expect_that(said, said.startswith("ration: cannot write to standard output") and said.count("\n") == 1)


def listed(_):
    """README.md lists each finding."""
    text = (pathlib.Path(__file__).parents[3] / "shim/cli/README.md").read_text()
    expect("missing", [name for name in table() if f"`{name}`" not in text], [])
    help_text = ration("doctor", "--help").stdout
    expect_that(help_text, all(part in help_text for part in ("--pid PID", "[-- COMMAND [ARGUMENTS...]]", "does not start", "Exit status:")))
    expect_that("the manual", (BUILD / "share/man/man1/ration-doctor.1").exists())


main({"a healthy machine has no trouble": healthy, "the options of a run": of_a_run, "what the loader finds is no trouble": found_by_loader,
      "a process that is held": healthy_process, "a process without a limit": counted_process,
      "a process in a container": in_a_container,
      "trouble comes first, text and JSON agree": in_order,
      "widths": widths, "widths of --coverage": coverage_widths, "no trace is left": no_trace, "a command is not started": is_not_started,
      "a program without --": hint_at_a_command, "a full disk": full_disk, "listed": listed})
