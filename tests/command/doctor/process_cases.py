"""Processes that are not held, or not as one may think."""
import os
import pathlib
import platform
import struct

from machine_cases import setuid_copy
from planting import (INTERPOSER, IS_ROOT, LIBRARIES, MUSL, NOBODY, PROBE, RATION, STATIC, NotHere, as_nobody, copied_installation, doctor, expect, expect_that,
                      in_namespaces, running, steps)

AWAIT = (PROBE, "await")
SPOILT = {"LD_PRELOAD": LIBRARIES}


def of_process(name, *words, command=AWAIT, **settings):
    """A case: a process that was started so."""
    def case(_):
        with running(*command, **settings) as pid:
            doctor("--pid", pid).expect(name, *words)
    return case


def of_another_user(name, *words):
    def case(folder):
        if not IS_ROOT:
            doctor("--pid", 1).expect(name, *words)
            return
        prefix = copied_installation(folder)
        with running(*AWAIT) as pid:
            doctor("--pid", pid, ration=prefix / "bin/ration", wrapper=as_nobody()).expect(name, *words)
    return case


def ended(_):
    """A process that nobody waits for."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        answer = doctor("--pid", pid)
        answer.expect("process_ended", f"process {pid} (", "has ended (a zombie)")
        expect("it is in no other trouble", len([each for each in answer.findings if each["severity"] == "trouble"]), 1)
    finally:
        os.waitpid(pid, 0)


def kernel(_):
    if pathlib.Path("/proc/2/comm").exists() and pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n":
        doctor("--pid", 2).expect("process_kernel", "process 2 (kthreadd) is a thread of the kernel")
    else:
        raise NotHere("to see the kernel's threads")


def unchecked(folder):
    of_another_user("process_unchecked", "no permission to read /proc/")(folder)
    if IS_ROOT:  # which looks into that user's folder
        os.chmod(folder, 0o755)
        state = pathlib.Path(folder) / "state"
        state.mkdir(mode=0o700)
        os.chown(state, NOBODY, NOBODY)
        with running(*as_nobody(), *steps("load", "init", "alloc"), **SPOILT, RATION_STATE_DIR=state, RATION_LIMIT="1GiB", HOME="/") as pid:
            answer = doctor("--pid", pid)
            expect("another user's", (answer.status, answer.of("process_unchecked"), answer.of("process_other_user")), (0, [], []))
            held, = answer.of("process")
            expect_that(held, "is held: no group, " in held["what"] and "limit now 1.00GiB" in held["what"])


def not_in_books(_):
    with running(*steps("load", "init", "alloc"), **SPOILT, RATION_STATE_DIR="/nowhere/at/all", RATION_LIMIT="1GiB") as pid:
        answer = doctor("--pid", pid)
        answer.expect("process_not_in_books", "/nowhere/at/all", "its state folder cannot be used", remedy="a limit of its own holds")
        expect("the true cause, once", [each["id"] for each in answer.findings if each["severity"] == "trouble"], ["state_unusable"])


def disabled(_):
    with running(*AWAIT, **SPOILT, RATION_DISABLE="1") as pid:
        answer = doctor("--pid", pid)
        answer.expect("process_disabled", "RATION_DISABLE=1")
        expect("nothing says that it is held", [each["id"] for each in answer.findings if each["severity"] != "ok"], ["process_disabled"])


def gone(_):
    with running(*AWAIT) as pid:
        pass
    doctor("--pid", pid).expect("process_gone", f"there is no process {pid}")


def privileged(folder):
    with running(setuid_copy(folder), "await", **SPOILT) as pid:
        doctor("--pid", pid).expect("process_privileged", "gained privileges at its start")


def foreign(folder):
    """A program of the 32-bit ABI, which prints `ready` and pauses."""
    if platform.machine() != "x86_64":
        raise NotHere("a kernel that runs 32-bit programs")
    text, at = b"ready\n", 0x8048000
    code = (b"\xb8\x04\0\0\0\xbb\x01\0\0\0\xb9" + struct.pack("<I", at + 84) + b"\xba" + struct.pack("<I", len(text)) + b"\xcd\x80"  # write
            + b"\xb8\x1d\0\0\0\xcd\x80\xeb\xf7")  # pause, again
    size = 84 + len(text) + len(code)
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, at + 84 + len(text), 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, at, at, size, size, 5, 0x1000)
    path = pathlib.Path(folder) / "small"
    path.write_bytes(header + segment + text + code)
    path.chmod(0o755)
    try:
        with running(path) as pid:
            doctor("--pid", pid).expect("process_foreign", "another machine or word size")
    except OSError as no_such_abi:
        raise NotHere("a kernel that runs 32-bit programs") from no_such_abi


def other_namespace(_):
    wrapper = in_namespaces("--pid", "--fork", "--mount-proc")
    with running(*wrapper, *steps()) as pid:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        doctor("--pid", children[0]).expect("process_other_namespace", "a PID namespace of its own, where it is 1")


def other_build(folder):
    prefix = copied_installation(folder)
    with running(*AWAIT, LD_PRELOAD=LIBRARIES.replace(str(RATION.parents[1]), str(prefix))) as pid:
        doctor("--pid", pid).expect("process_other_build", f"has {prefix}")
        (prefix / "lib/libration.so").unlink()
        doctor("--pid", pid).expect("process_other_build", "was replaced or removed since")


def fork(_):
    with running(*steps("load", "init", "alloc", "fork"), **SPOILT, RATION_LIMIT="1GiB") as pid:
        doctor("--pid", pid).expect("process_fork", "is a fork of process")


def device_memory(folder):
    machine = {"SIMCUDA_MACHINE": folder}
    with running(*steps("load", "init", "alloc"), **machine) as pid:
        answer = doctor("--pid", pid, **machine)
        answer.expect("process_device_memory", "is not tracked by Ration, but NVML reports 257MiB for it")
        answer.expect("process_without_ration", "libration.so is not in")


CASES = {
    "process_gone": gone,
    "process_other_user": of_another_user("process_other_user", "belongs to user 0"),
    "process_unchecked": unchecked,
    "process_ended": ended,
    "process_kernel": kernel,
    "process_other_namespace": other_namespace,
    "process_static": of_process("process_static", "statically linked", command=(STATIC, "await")),
    "process_privileged": privileged,
    "process_musl": of_process("process_musl", "runs on musl", command=(MUSL, "await")),
    "process_foreign": foreign,
    "process_seccomp": of_process("process_seccomp", "seccomp mode 2", command=steps("filter")),
    "process_disabled": disabled,
    "process_preload_lost": of_process("process_preload_lost", "without LD_PRELOAD: it was lost on the way",
                                       command=(RATION, "run", "env", "-u", "LD_PRELOAD", *steps("fork"))),
    "process_environment_cleared": of_process("process_environment_cleared", "started with a cleared environment", "(ration) runs under Ration",
                                              command=(RATION, "run", "env", "-i", *steps("fork"))),
    "process_without_ration": of_process("process_without_ration", "started without Ration"),
    "process_not_loaded": of_process("process_not_loaded", "/nowhere/libration.so, which does not exist there", LD_PRELOAD="/nowhere/libration.so"),
    "process_other_build": other_build,
    "process_interposer_first": of_process("process_interposer_first", f"{INTERPOSER.name} was preloaded before libration.so",
                                           LD_PRELOAD=f"{INTERPOSER}:{LIBRARIES}"),
    "process_without_cuda": of_process("process_without_cuda", "has not loaded the driver", **SPOILT),
    "process_waits": of_process("process_waits", "made no CUDA call yet", command=steps("load"), **SPOILT),
    "process_fork": fork,
    "process_not_in_books": not_in_books,
    "process_device_memory": device_memory,
}
