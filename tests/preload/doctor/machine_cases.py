"""Trouble with the state folder, containers, settings, and commands."""
import os
import pathlib
import re
import shutil
import subprocess

from planting import (IS_ROOT, MUSL, NOBODY, OLD, PLANTED, PROBE, RATION, STATIC, NotHere, doctor, environment, expect,
                      in_namespaces, with_etc)


def in_folder(name, *words, make=lambda path: path.mkdir(mode=0o700)):
    """A case: a state folder, as `make` leaves it."""
    def case(folder):
        path = pathlib.Path(folder) / "state"
        make(path)
        doctor(RATION_STATE_DIR=path).expect(name, *words)
    return case


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


def contained(name, *words, **settings):
    def case(_):
        wrapper = in_namespaces("--pid", "--fork", "--mount-proc")
        doctor(wrapper=wrapper, **settings).expect(name, *words)
    return case


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
    doctor(RATION_LARGE_ALIGNMENT="2MiB").expect("setting_without_effect", "RATION_LARGE_ALIGNMENT=2MiB", "not implemented yet")


def escapable(folder):
    listed = subprocess.run([RATION, "config"], env=environment(), capture_output=True, text=True, check=True).stdout
    path, = re.findall(r"^/etc/(\S*config\.json)  system", listed, re.M) or [None]
    if path is None:
        raise NotHere("a system folder in /etc")
    wrapper = with_etc(folder, **{path.replace("/", "__"): '{"limit": {"0": "1GiB"}, "locked": ["limit"]}'})
    doctor(wrapper=wrapper).expect("setting_lock_escapable", "ordinals change with CUDA_VISIBLE_DEVICES")


def of_command(name, *words, command):
    return lambda _: doctor("--", *command).expect(name, *words)


def not_found(folder):
    doctor("--", "no-such-command", PATH="/usr/bin:/bin").expect("command_not_found", "no-such-command: not found in PATH")
    script = pathlib.Path(folder) / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    doctor("--", script).expect("command_not_found", "its interpreter /nowhere/interpreter")


def not_executable(folder):
    file = pathlib.Path(folder) / "file"
    file.touch(mode=0o644)
    doctor("--", file).expect("command_not_executable", "Permission denied")


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


def clears_environment(folder):
    tools = pathlib.Path(folder)
    for name in ("sudo", "ssh", "docker", "su", "systemd-run"):
        shutil.copy(PROBE, tools / name)
    path = f"{folder}:{os.environ['PATH']}"
    for command, words, remedy in ((["sudo", "-u", "x", "ls"], "sudo runs its command with other rights", "sudo ... ration run"),
                                   (["env", "-i", "ls"], "env starts its command without LD_PRELOAD", "env ... ration run"),
                                   (["env", "-u", "LD_PRELOAD", "ls"], "env starts its command without LD_PRELOAD", "env ... ration run"),
                                   (["nice", "-n", "5", "sudo", "ls"], "sudo runs", "sudo ... ration run"),
                                   (["su", "x", "-c", "ls"], "su runs", "su USER -c"),
                                   (["ssh", "host", "ls"], "ssh starts its command on another machine", "install Ration there"),
                                   (["systemd-run", "ls"], "under a service", "systemd-run ... ration run"),
                                   (["docker", "run", "image"], "in a container", "ration cdi")):
        doctor("--", *command, PATH=path).expect("command_clears_environment", words, remedy=remedy)
    for command in (["env", "A=1", "grep", "-i", "x"], ["docker", "ps"], ["nice", "ls"], ["runuser", "-u", "x", "ls"]):
        expect(f"{command} keeps it", doctor("--", *command, PATH=path).of("command_clears_environment"), [])


def own_driver(_):
    doctor("--", PLANTED / "doctor_by_rpath").expect("command_own_driver", "looks for the driver in a folder of its own", "lacking/libcuda.so.1")
    doctor("--", PLANTED / "doctor_by_path").expect("command_own_driver", "is linked with the driver by path", "named/libcuda.so.1")


CASES = {
    "state_not_folder": in_folder("state_not_folder", "state is a link", make=linked),
    "state_foreign_owner": foreign,
    "state_open_to_others": in_folder("state_open_to_others", "other users may write to it", make=open_to_others),
    "state_unusable": lambda _: doctor(RATION_STATE_DIR="/nowhere/at/all").expect("state_unusable", "/nowhere/at/all cannot be made"),
    "state_full": mounted("state_full", "has 0B left", script="mount -t tmpfs -o size=64k,mode=700 none state; head -c 64k /dev/zero >state/all"),
    "state_no_inodes": mounted("state_no_inodes", "can have 1 more files", script="mount -t tmpfs -o size=8m,nr_inodes=2,mode=700 none state"),
    "state_no_locks": unlocked,
    "state_file_system": mounted("state_file_system", "lies on overlay: an overlay is one container's alone",
                                 script="mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work state"),
    "shared_memory_missing": without_shared_memory,
    "container_processes": contained("container_processes", "PID namespace of its own"),
    "container_books": contained("container_books", "/dev/shm/ration-", "this container's alone", RATION_STATE_DIR=None),
    "setting_malformed": with_settings("setting_malformed", "RATION_LIMIT=much: it does not begin with a number", RATION_LIMIT="much"),
    "setting_unknown": unknown,
    "setting_without_effect": without_effect,
    "setting_lock_escapable": escapable,
    "setting_absent_device": with_settings("setting_absent_device", "3=1GiB", RATION_LIMIT="0=1GiB,3=1GiB"),
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
    "command_own_driver": own_driver,
}
