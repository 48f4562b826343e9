"""Trouble with the state folder, containers, settings, and commands."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from planting import (IS_ROOT, LIBRARIES, LIBRARY, MUSL, NOBODY, OLD, PLANTED, PROBE, RATION, STATIC, NotHere, as_nobody, copied_installation, doctor,
                      environment, expect, expect_that, in_namespaces, running, with_etc)


def in_folder(name, *words, make=lambda path: path.mkdir(mode=0o700)):
    """A case: a state folder, as `make` leaves it."""
    def case(folder):
        path = pathlib.Path(folder) / "state"
        make(path)
        doctor(RATION_STATE_DIR=path).expect(name, *words)
    return case


def unusable(_):
    doctor(RATION_STATE_DIR="/nowhere/at/all").expect("state_unusable", "/nowhere/at/all cannot be made", "members of groups get no memory")
    if IS_ROOT:
        answer = doctor(RATION_STATE_DIR="/proc")
        answer.expect("state_unusable", "/proc lies on a file system that has no space for files")
        expect("it is not full", answer.of("state_full"), [])


def linked(path):
    path.symlink_to("/dev/shm")


def open_to_others(path):
    path.mkdir()
    path.chmod(0o777)


def foreign(folder):
    if not IS_ROOT:
        doctor(RATION_STATE_DIR="/etc").expect("state_foreign_owner", "/etc belongs to user 0")
        return
    os.chown(folder, NOBODY, NOBODY)
    doctor(RATION_STATE_DIR=folder).expect("state_foreign_owner", f"belongs to user {NOBODY}, not to 0")


def mounted(name, *words, script):
    """A case: a state folder that `script` mounts at $0/state."""
    def case(folder):
        path = pathlib.Path(folder) / "state"
        for each in (path, path.with_name("lower"), path.with_name("upper"), path.with_name("work")):
            each.mkdir(mode=0o700)
        wrapper = in_namespaces("--mount", script=f"cd {folder}; {script}")
        doctor(RATION_STATE_DIR=path, wrapper=wrapper).expect(name, *words)
    return case


def without_shared_memory(folder):
    dev = pathlib.Path(folder) / "dev"
    dev.mkdir()
    devices = ("null", "zero", "urandom")
    for name in devices:
        (dev / name).touch()
    script = "; ".join(f"mount --bind /dev/{name} {dev}/{name}" for name in devices) + f"; mount --rbind {dev} /dev"
    doctor(wrapper=in_namespaces("--mount", script=script)).expect("shared_memory_missing", "/dev/shm: No such file")
    doctor(wrapper=in_namespaces("--mount", script=script), RATION_STATE_DIR=None).expect("state_unusable", "/dev/shm/ration-", "cannot be made")


def unlocked(_):
    doctor(LD_PRELOAD=PLANTED / "locks/no_locks.so").expect("state_no_locks", "cannot be locked: No locks available")


def contained(_):
    """With a /dev/shm as containers have it; where the host's is left, the PID namespace alone says nothing."""
    options = ("--pid", "--fork", "--mount-proc", "--mount")
    wrapper = in_namespaces(*options, script="mount -t tmpfs shm /dev/shm")
    doctor(wrapper=wrapper, RATION_STATE_DIR=None).expect("container_books", "/dev/shm/ration-", "this container's alone")
    expect("the host's", doctor(wrapper=in_namespaces(*options), RATION_STATE_DIR=None).of("container_books"), [])


def read_only(_):
    wrapper = in_namespaces("--mount", script="mount -t tmpfs -o ro none /dev/shm")
    doctor(wrapper=wrapper).expect("shared_memory_read_only", "/dev/shm is mounted read-only")


def with_settings(name, *words, **settings):
    """A case: settings in the environment."""
    return lambda _: doctor(**settings).expect(name, *words)


def unknown(folder):
    doctor(RATION_LIMT="1GiB").expect("setting_unknown", "RATION_LIMT=1GiB: there is no such setting", "RATION_LIMIT")
    file = pathlib.Path(folder) / "file.json"
    file.write_text('{"limt": "1GiB"}')
    doctor(RATION_CONFIG=file).expect("setting_unknown", "file.json", "there is no such key")


def without_effect(_):
    doctor(RATION_LOG_SIZE="4MiB").expect("setting_without_effect", "RATION_LOG_SIZE=4MiB has no effect without a log", remedy="set RATION_LOG too")
    doctor(TF_GPU_ALLOCATOR="cuda_malloc").expect("setting_without_effect", "TF_GPU_ALLOCATOR=cuda_malloc has no effect here: only")
    for name, value in (("XLA_PYTHON_CLIENT_ALLOCATOR", "foo"), ("TF_FORCE_UNIFIED_MEMORY", "yes"), ("CUDA_DEVICE_MEMORY_LIMIT_7", "1g")):
        answer = doctor(**{name: value})
        expect(f"{name} is said once: {answer.text}", sum(f"{name}={value}" in each["what"] for each in answer.findings if each["severity"] != "ok"), 1)


def escapable(folder):
    listed = subprocess.run([RATION, "env", "--files"], env=environment(), capture_output=True, text=True, check=True).stdout
    path, = re.findall(r"^/etc/(\S*config\.json)  system", listed, re.M) or [None]
    if path is None:
        raise NotHere("a system folder in /etc")
    wrapper = with_etc(folder, **{path.replace("/", "__"): '{"limit": {"0": "1GiB"}, "locked": ["limit"]}'})
    doctor(wrapper=wrapper).expect("setting_lock_escapable", "ordinals change with CUDA_VISIBLE_DEVICES")
    doctor(wrapper=wrapper).expect("setting_lock_escapable", "RATION_DISABLE=1 lifts the locks of this file")
    doctor(wrapper=wrapper, RATION_LIMIT="50%").expect("setting_cut", "RATION_LIMIT=50%: asks for", "limit=0=1GiB is locked")


def of_command(name, *words, command):
    return lambda _: doctor("--", *command).expect(name, *words)


def not_found(folder):
    doctor("--", "no-such-command", PATH="/usr/bin:/bin").expect("command_not_found", "no-such-command: not found in PATH")
    script = pathlib.Path(folder) / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    doctor("--", script).expect("command_not_found", "its interpreter /nowhere/interpreter")
    for first in ("#!/bin/sh", "#!/usr/bin/env sh"):
        script.write_bytes(f"{first}\r\nls\r\n".encode())
        doctor("--", script).expect("command_not_found", "sh\\x0d: No such file", remedy=f"sed -i 's/\\r$//' {script}")
    doctor("--", "env", "-i", "ration", "run", "ls").expect("command_not_found", "ration: not found in PATH", remedy=f"write {RATION}")


def not_executable(folder):
    file = pathlib.Path(folder) / "file"
    file.touch(mode=0o644)
    doctor("--", file).expect("command_not_executable", "Permission denied")
    doctor("--", folder).expect("command_not_executable", "Is a directory", remedy="name a program in it")
    doctor("--", "").expect("command_not_executable", "the name of the command is empty", remedy="after --")
    if IS_ROOT:
        closed = pathlib.Path(folder) / "closed"
        closed.mkdir(mode=0o700)
        shutil.copy(PROBE, closed / "program")
        prefix = copied_installation(folder)
        doctor("--", closed / "program", ration=prefix / "bin/ration", wrapper=as_nobody()).expect(
            "command_not_executable", "Permission denied", remedy=f"may not search the folder {closed}")


def static(folder):
    doctor("--", STATIC, "preload").expect("command_static", "statically linked")
    script = pathlib.Path(folder) / "script"
    script.write_text(f"#!{STATIC} preload\n")
    script.chmod(0o755)
    doctor("--", script).expect("command_static", f"a script, which {STATIC} executes", "statically linked")


def setuid_copy(folder):
    """A program that is another user's and setuid, in a folder whose file system heeds that."""
    if not IS_ROOT:
        raise NotHere("to give a file to another user")
    path = pathlib.Path(folder) / "setuid"
    shutil.copy(PROBE, path)
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o4755)
    os.chmod(folder, 0o755)
    if subprocess.run([path, "secure"], capture_output=True, text=True, check=False).stdout != "secure 1\n":
        raise NotHere("a file system with setuid")
    return path


def privileged(folder):
    program = shutil.which("su")
    if IS_ROOT or program is None or not os.stat(program).st_mode & 0o4000:
        program = setuid_copy(folder)
    doctor("--", program).expect("command_privileged", "setuid, setgid or has file capabilities")


def foreign_machine(folder):
    path = pathlib.Path(folder) / "foreign"
    content = bytearray(pathlib.Path(PROBE).read_bytes())
    content[18:20] = b"\x34\x12"  # e_machine
    path.write_bytes(content)
    path.chmod(0o755)
    doctor("--", path).expect("command_foreign", "another machine or word size")


def tools_in(folder):
    """PATH with programs of these names, which only exist."""
    for name in ("sudo", "ssh", "docker", "systemd-run"):
        shutil.copy(PROBE, pathlib.Path(folder) / name)
    shutil.copy(STATIC, pathlib.Path(folder) / "podman")
    return f"{folder}:{RATION.parent}:{os.environ['PATH']}"


def clears_environment(folder):
    path = tools_in(folder)
    behind = f"... {RATION} run OPTIONS"  # whose PATH is cleared, too
    for command, words, remedy in ((["sudo", "-u", "x", "ls"], "sudo runs its command with other rights", f"sudo {behind}"),
                                   (["env", "-i", "ls"], "env starts its command without LD_PRELOAD", f"env {behind}"),
                                   (["env", "-u", "LD_PRELOAD", "ls"], "env starts its command without LD_PRELOAD", f"env {behind}"),
                                   (["env", "-S", "-i ls"], "env starts its command without LD_PRELOAD", f"env {behind}"),
                                   (["env", "LD_PRELOAD=/x.so", "ls"], "env starts its command with LD_PRELOAD=/x.so, without libration.so", f"env {behind}"),
                                   (["nice", "-n", "5", "sudo", "ls"], "sudo runs", f"sudo {behind}"),
                                   (["su", "-", "root", "-c", "ls"], "su starts", f"su USER -c '{RATION} run"),
                                   (["ssh", "host", "ls"], "ssh starts its command on another machine", "install Ration there"),
                                   (["systemd-run", "ls"], "under a service", f"systemd-run {behind}"),
                                   (["bash", "-c", "LD_PRELOAD= ls"], "bash takes the library out of LD_PRELOAD", "into its command line"),
                                   (["bash", "-c", "unset LD_PRELOAD; ls | cat"], "bash takes", "into its command line"),
                                   (["docker", "run", "image"], "in a container", "ration cdi")):
        doctor("--", *command, PATH=path).expect("command_clears_environment", words, remedy=remedy)
    kept = [["env", "A=1", "grep", "-i", "x"], ["docker", "ps"], ["nice", "ls"], ["runuser", "-u", "x", "ls"],
            ["sudo", "ration", "run", "--limit", "1GiB", "--", "ls"], ["env", "-i", RATION, "run", "--limit", "1GiB", "ls"],
            ["env", "-i", f"LD_PRELOAD={LIBRARY}", "RATION_LIMIT=1GiB", "ls"], ["systemd-run", "--scope", "ls"], ["chroot", "/", "ls"]]
    if IS_ROOT:
        kept += [["su", "root", "-c", "ls"]]
    for command in kept:
        answer = doctor("--", *command, PATH=path)
        expect(f"{command} keeps it", (answer.of("command_clears_environment"), answer.status), ([], 0))
    to_a_server(folder)
    remote = doctor("--", "podman", "run", "image", PATH=path)
    expect("a client's own linkage", [each["id"] for each in remote.findings if each["severity"] == "trouble"], ["command_clears_environment"])


LISTENER = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
os.makedirs(os.path.dirname(sys.argv[1]), mode=0o700, exist_ok=True)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
sys.stdin.read()
"""


def to_a_server(folder):
    """tmux and screen hand over where a server runs, and what that was started with counts."""
    path = tools_in(folder)
    for name in ("tmux", "screen", "at"):
        shutil.copy(PROBE, pathlib.Path(folder) / name)
    socket = f"{folder}/tmux-{os.getuid()}/default"
    lines = (["tmux"], ["tmux", "new", "-d", "ls"], ["tmux", "neww", "ls -l"], ["tmux", "splitw", "-t", "0", "ls"], ["tmux", "send-keys", "ls", "Enter"],
             ["tmux", "-S", socket, "new", "ls"], ["tmux", "-S" + socket, "new", "ls"], ["tmux", "-Ldefault", "new", "-d", "ls"],
             ["tmux", "attach", ";", "new-window", "ls"])
    without_server = {"PATH": path, "TMUX_TMPDIR": folder, "TMUX": None, "STY": None}
    for command in (*lines, ["screen", "-dmS", "x", "ls"]):
        expect(f"{command} without a server", doctor("--", *command, **without_server).of("command_clears_environment"), [])
    with running(sys.executable, "-c", LISTENER, socket) as pid:
        for command in lines:
            doctor("--", *command, **without_server).expect("command_clears_environment", "tmux hands its command to a server", remedy="put ration run")
        doctor("--", "tmux", "send-keys", "ls", **without_server).expect("command_clears_environment", remedy="into what it is given")
        kept = [["tmux", "ls"], ["tmux", "new", "-d", f"{RATION} run --limit 1GiB -- ls"], ["tmux", "-L", "other", "new", "ls"],
                ["tmux", "new", "-d", f"cd / && {RATION} run --limit 1GiB -- ls"], ["tmux", "-Lother", "new", "ls"],
                ["tmux", "new", "-e", f"LD_PRELOAD={LIBRARY}", "ls"], ["tmux", "send-keys", "ration run --limit 1GiB ls", "Enter"]]
        for command in kept:
            expect(f"{command} keeps it", doctor("--", *command, **without_server).status, 0)
        inside = without_server | {"TMUX_TMPDIR": None, "TMUX": f"{socket},{pid},0"}
        doctor("--", "tmux", "neww", "ls", **inside).expect("command_clears_environment", "tmux", remedy="tmux ... ")
        in_screen = without_server | {"STY": f"{pid}.pts-0.host"}
        doctor("--", "screen", "ls", **in_screen).expect("command_clears_environment", "screen hands its command to a server", remedy="screen ... ")
        expect("a new session", doctor("--", "screen", "-m", "ls", **in_screen).status, 0)
        doctor("--", "sh", "-c", "ls; tmux new -d $0", **without_server).expect("unchecked", "loses LD_PRELOAD by tmux,", remedy="--pid PID")
    pathlib.Path(socket).unlink()
    with running(sys.executable, "-c", LISTENER, socket, LD_PRELOAD=LIBRARIES):
        expect("under Ration", doctor("--", *lines[1], **without_server).of("command_clears_environment"), [])
    settings_of_server(lines[1], socket, without_server)
    expect("an ended server", doctor("--", *lines[1], **without_server).of("command_clears_environment"), [])
    doctor("--", "at", "now", PATH=path).expect("command_clears_environment", "at hands its command to a server", remedy="put ration run")


def settings_of_server(command, socket, without_server):
    """A server that has the library starts programs with its own settings, not with those that its client has."""
    other = {"RATION_LIMIT": "1GiB", "RATION_GROUP": "lab"}
    shown = "tmux hands its command to a server that was started with other settings and runs it without RATION_LIMIT=1GiB"
    in_screen = {name: value for name, value in without_server.items() if name != "STY"}
    pathlib.Path(socket).unlink()
    for own in ({"RATION_LIMIT": "2GiB"}, {"RATION_DISABLE": "1"}, {}):
        with running(sys.executable, "-c", LISTENER, socket, LD_PRELOAD=LIBRARIES, **own) as pid:
            doctor("--", *command, **without_server, **other).expect("command_clears_environment", shown, "RATION_GROUP=lab", remedy="tmux ... ")
            doctor("--", "screen", "ls", **in_screen, STY=f"{pid}.x", **other).expect("command_clears_environment", "screen hands", remedy="screen ... ")
            for given in (["tmux", "new", "-d", f"{RATION} run --limit 1GiB -- ls"], ["tmux", "new", "-eRATION_LIMIT=1GiB", "-e", "RATION_DISABLE=", "ls"]):
                expect(f"{given}, {own}", doctor("--", *given, **without_server, RATION_LIMIT="1GiB").of("command_clears_environment"), [])
            settings, = doctor("--", *command, **without_server).of("settings")
            expect_that(settings, all(f"{name}={value}" in settings["what"] for name, value in own.items() if name != "RATION_DISABLE"))
        pathlib.Path(socket).unlink()
    with running(sys.executable, "-c", LISTENER, socket, LD_PRELOAD="/nowhere/libration.so", RATION_LIMIT="1GiB"):
        doctor("--", *command, **without_server, LD_PRELOAD=LIBRARY, RATION_LIMIT="1GiB").expect("preload_gone", "/nowhere/libration.so")
    with_library = {"LD_PRELOAD": LIBRARIES, "RATION_LIMIT": "1GiB"}
    pathlib.Path(socket).unlink()
    with running(sys.executable, "-c", LISTENER, socket, **with_library):
        expect("the same settings", doctor("--", *command, **without_server, **with_library).status, 0)


def behind_launchers(folder):
    """The program at the end of the line is the one that is checked, with what the line sets."""
    path = tools_in(folder)
    for launcher in (["nice"], ["timeout", "5"], ["env", "A=1"], ["setsid"], ["xargs", "-n", "1"], ["nohup"], ["ration", "run", "--"],
                     ["sh", "-c", f"exec {STATIC}"], ["bash", "-c", f"{STATIC} preload"]):
        command = launcher if "-c" in launcher else [*launcher, STATIC]
        doctor("--", *command, PATH=path).expect("command_static", "statically linked")
    doctor("--", "nice", "./nonexistent").expect("command_not_found", "./nonexistent")
    doctor("--", "no-such-launcher", "./nonexistent").expect("command_not_found", "no-such-launcher")
    doctor("--", "env", "RATION_DISABLE=1", PROBE).expect("disabled", "RATION_DISABLE=1")
    doctor("--", "env", "RATION_LIMIT=4XB", PROBE).expect("setting_malformed", "RATION_LIMIT=4XB")
    doctor("--", "env", "-u", "RATION_LIMIT", PROBE, RATION_LIMIT="1GiB").expect("command_changes_settings", "env unsets RATION_LIMIT")
    doctor("--", "env", "RATION_LIMIT=2GiB", PROBE, RATION_LIMIT="1GiB").expect("command_changes_settings", "env sets RATION_LIMIT=2GiB, in place of 1GiB")


def unchecked(folder):
    script = pathlib.Path(folder) / "script"
    ask = "run ration doctor --pid PID"
    for text, which in (("# LD_PRELOAD\nif ls; then ls; fi\n", ""), ("ls\nunset LD_PRELOAD\nls\n", ", which changes LD_PRELOAD,"),
                        ("set -e\nls\n  exec env -i ls\n", ", which loses LD_PRELOAD by env,"), ("# sudo ls\nenv A=1 ls\nls\n", "")):
        script.write_text("#!/bin/sh\n" + text)
        script.chmod(0o755)
        for command in ([script], ["sh", script]):
            doctor("--", *command).expect("unchecked", f"what the script {script}{which} starts was not checked", remedy=ask)
    script.write_text("#!/bin/sh\nset -e\n  exec env -i ls\n")
    doctor("--", script).expect("command_clears_environment", "env starts its command without LD_PRELOAD", remedy="env ... ")
    script.write_text("#!/usr/bin/env -S -i A=1 sh\n")
    doctor("--", script).expect("command_clears_environment", "env starts its command without LD_PRELOAD", remedy="env ... ")
    doctor("--", "bash", "-c", "ls; unset LD_PRELOAD; ls").expect("unchecked", "whose command line changes LD_PRELOAD,", remedy=ask)
    doctor("--", "unknown", "env", "-i", "ls").expect("unchecked", "what unknown, of which an argument loses LD_PRELOAD by env, starts", remedy=ask)
    for simple in (["bash", "-c", "ls -l"], ["ls"]):
        expect(f"{simple} is checked", doctor("--", *simple).of("unchecked"), [])


def own_driver(_):
    doctor("--", PLANTED / "doctor_by_rpath").expect("command_own_driver", "looks for the driver in a folder of its own", "lacking/libcuda.so.1")
    doctor("--", PLANTED / "doctor_by_path").expect("command_own_driver", "is linked with the driver by path", "named/libcuda.so.1")


CASES = {
    "state_not_folder": in_folder("state_not_folder", "state is a link", make=linked),
    "state_foreign_owner": foreign,
    "state_open_to_others": in_folder("state_open_to_others", "other users may write to it", make=open_to_others),
    "state_unusable": unusable,
    "state_full": mounted("state_full", "has 0B left", script="mount -t tmpfs -o size=64k,mode=700 none state; head -c 64k /dev/zero >state/all"),
    "state_no_inodes": mounted("state_no_inodes", "can have 1 more file; a limit of each process holds all the same", script="mount -t tmpfs -o size=8m,nr_inodes=2,mode=700 none state"),
    "state_no_locks": unlocked,
    "state_file_system": mounted("state_file_system", "lies on overlay: an overlay is one container's alone",
                                 script="mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work state"),
    "shared_memory_missing": without_shared_memory,
    "shared_memory_read_only": read_only,
    "container_books": contained,
    "setting_malformed": with_settings("setting_malformed", "RATION_LIMIT=much: it does not begin with a number", RATION_LIMIT="much"),
    "setting_unknown": unknown,
    "setting_without_effect": without_effect,
    "setting_lock_escapable": escapable,
    "setting_cut": escapable,
    "setting_unwritable_log": with_settings("setting_unwritable_log", "RATION_LOG=/nowhere/x.jsonl: cannot write", "there is no folder /nowhere",
                                            RATION_LOG="/nowhere/x.jsonl"),
    "setting_absent_device": lambda _: doctor(RATION_LIMIT="0=1GiB,3=1GiB").expect("setting_absent_device", "3=1GiB",
                                                                                   remedy="by number or UUID: 0 (GPU-"),
    "limit_none": with_settings("limit_none", "counted, not limited"),
    "disabled": with_settings("disabled", "RATION_DISABLE=1", RATION_DISABLE="1"),
    "command_not_found": not_found,
    "command_not_executable": not_executable,
    "command_static": static,
    "command_privileged": privileged,
    "command_musl": of_command("command_musl", "it runs on musl", command=[MUSL]),
    "command_foreign": foreign_machine,
    "command_old_c_library": of_command("command_old_c_library", "which lacks the version GLIBC_2.", command=[OLD]),
    "command_clears_environment": clears_environment,
    "command_changes_settings": behind_launchers,
    "unchecked": unchecked,
    "command_own_driver": own_driver,
}
