"""Trouble with the installation, the driver, its devices, and other preloads."""
import os
import pathlib
import re
import shutil
import subprocess

from planting import (BUILD, INTERPOSER, IS_ROOT, LIBRARY, PLANTED, PROBE, RATION, SIMULATOR, NotHere, as_nobody, change_bytes, copied_installation, doctor,
                      driver_folder_of, environment, expect, expect_that, in_namespaces, running, steps, with_etc)

CUDA, NVML = SIMULATOR / "libcuda.so.1", SIMULATOR / "libnvidia-ml.so.1"


def of_copy(change, name, *words, wrapper=tuple):
    """A case: the installation, copied and changed."""
    def case(folder):
        prefix = copied_installation(folder)
        change(prefix)
        doctor(ration=prefix / "bin/ration", wrapper=wrapper()).expect(name, *words)
    return case


def missing(folder):
    for part in ("libration.so", "libration-core.so"):
        prefix = copied_installation(pathlib.Path(folder) / part.removesuffix(".so"))
        (prefix / "lib" / part).unlink()
        answer = doctor(ration=prefix / "bin/ration")
        answer.expect("library_missing", f"lib/{part}: No such file")
        expect("nothing is started without a library", answer.of("hooks") + answer.of("hooks_silent"), [])


def unreadable(prefix):
    (prefix / "lib/libration-core.so").chmod(0)


def cut_short(prefix):
    os.truncate(prefix / "lib/libration-core.so", 20000)


def other_machine(prefix):
    core = prefix / "lib/libration-core.so"
    content = bytearray(core.read_bytes())
    content[18:20] = b"\x34\x12"  # e_machine
    core.write_bytes(content)


def newer_c_library(prefix):
    change_bytes(prefix / "lib/libration-core.so", b"\0GLIBC_2.", b"\0GLIBC_9.")


def other_build(prefix):
    version = subprocess.run([RATION, "--version"], env=environment(), capture_output=True, check=True).stdout.split()[1]
    change_bytes(prefix / "lib/libration-core.so", b"\0" + version + b"\0", b"\0" + version[:-1] + b"x\0")


def without_start(prefix):
    change_bytes(prefix / "lib/libration-core.so", b"ration_core_start", b"ration_core_stall")


def path_with_blank(folder):
    prefix = copied_installation(pathlib.Path(folder) / "with blank")
    doctor(ration=prefix / "bin/ration").expect("library_path", "with blank/installed/lib/libration.so")


def with_drivers(name, *words, settings=None, **files):
    """A case: a folder of drivers before the simulated one."""
    def case(folder):
        made = driver_folder_of(folder, **files)
        doctor(LD_LIBRARY_PATH=f"{made}:{SIMULATOR}", **settings or {}).expect(name, *words)
    return case


def stub(folder):
    (pathlib.Path(folder) / "stubs").mkdir()
    shutil.copy(CUDA, pathlib.Path(folder) / "stubs/libcuda.so.1")
    doctor(LD_LIBRARY_PATH=f"{folder}/stubs").expect("driver_is_stub", "stubs/libcuda.so.1 is the stub")
    doctor(SIMCUDA_FAIL="cuInit@1:34").expect("driver_is_stub", "libcuda.so.1")


def fails(_):
    doctor(SIMCUDA_FAIL="cuInit@1:2").expect("driver_fails", "cuInit failed with error 2")
    doctor(SIMCUDA_FAIL="cuInit@1:803").expect("driver_fails", "do not fit together", remedy="restart the machine")


def several(folder):
    foreign_driver(folder)
    made = driver_folder_of(folder, cuda=CUDA)
    doctor(LD_LIBRARY_PATH=f"{SIMULATOR}:{made}").expect("drivers_several", str(made), f"load {CUDA.resolve()}")


def versions(folder):
    shutil.copy(CUDA, pathlib.Path(folder) / "libcuda.so.535.1")
    (pathlib.Path(folder) / "libcuda.so.1").symlink_to("libcuda.so.535.1")
    doctor(LD_LIBRARY_PATH=f"{folder}:{SIMULATOR}").expect("driver_versions", "is of version 535.1, the kernel's driver of 580")


def with_variables(name, *words, **settings):
    """A case: variables are set."""
    return lambda _: doctor(**settings).expect(name, *words)


def driver_limit(_):
    answer = doctor(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=1G", RATION_LIMIT="2GiB", LD_PRELOAD=LIBRARY)
    answer.expect("device_driver_limit", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G: of device 0 1.00GiB hold, less than the 2.00GiB")
    device, = answer.of("device")
    expect_that(device, "limit 1.00GiB" in device["what"])
    for limit, value in (("2GiB", "0=4G"), (None, "0=1G"), ("2GiB", "rubbish")):
        expect(f"{value} beside {limit}", doctor(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=value, RATION_LIMIT=limit).of("device_driver_limit"), [])


def kernel_limit(_):
    """A cgroup, and the one above it, with dmem.max; a region without a limit is none."""
    line, = re.findall(r"^0::(.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M) or [None]
    if line is None or ".." in line:
        raise NotHere("a cgroup of version 2")
    root = "/sys/fs/cgroup"
    script = f"mount -t tmpfs none {root}; mkdir -p {root}{line}"
    for value, limits in (("1073741824", True), ("max", False)):
        wrapper = in_namespaces("--mount", script=f"{script}; echo 'drm/0000:01:00.0/vram {value}' >{root}{line.rstrip('/')}/dmem.max")
        answer = doctor(wrapper=wrapper)
        if limits:
            answer.expect("device_kernel_limit", "dmem.max limits drm/0000:01:00.0/vram to 1.00GiB")
        expect(f"found with {value}", (len(answer.of("device_kernel_limit")), len(answer.of("device_only_cap"))), (1, 0) if limits else (0, 1))
    only, = doctor(wrapper=in_namespaces("--mount", script=script), NVIDIA_GPU_MEMORY_LIMIT="1024").of("device_only_cap")
    expect_that(only, "Ration's limit is the only one, that of NVIDIA_GPU_MEMORY_LIMIT=1024 too" in only["what"])
    expect("MPS", doctor(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=1G").of("device_only_cap"), [])
    for settings, words in (({"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "3=1G"}, "here"), ({"NVIDIA_GPU_MEMORY_LIMIT": "abc"}, "Ration's limit is the only one"),
                            ({"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "bad"}, "Ration's limit is the only one"), ({}, "here")):
        cap, = doctor(wrapper=in_namespaces("--mount", script=script), **settings).of("device_only_cap")
        expect_that(f"{settings}: {cap}", cap["what"].endswith(words))


def smaller_than_limit(_):
    doctor(RATION_LIMIT="20GiB").expect("device_smaller_than_limit", "RATION_LIMIT=20GiB is more than device 0 has, 8.00GiB")
    expect("a share", doctor(RATION_LIMIT="100%").of("device_smaller_than_limit"), [])
    device, = doctor(RATION_GROUP="lab", RATION_GROUP_LIMIT="3GiB").of("device")
    expect_that(device, "limit of group lab 3.00GiB" in device["what"])


def without_device(_):
    for value in ("", "9"):
        doctor(CUDA_VISIBLE_DEVICES=value).expect("device_none", f"has no device that CUDA_VISIBLE_DEVICES={value} leaves",
                                                  remedy="unset CUDA_VISIBLE_DEVICES")
    doctor(RATION_LIMIT="5=1GiB", CUDA_VISIBLE_DEVICES="0").expect("setting_absent_device", "5=1GiB", remedy="0 (GPU-")


def absent(_):
    doctor(RATION_LIMIT="1GiB").expect("preload_absent", "LD_PRELOAD does not have libration.so")
    expect("with it", doctor(RATION_LIMIT="1GiB", LD_PRELOAD=LIBRARY).of("preload_absent"), [])
    expect("for a command", doctor("--", "ls", RATION_LIMIT="1GiB").of("preload_absent"), [])
    expect("for its own library", doctor("--", "env", f"LD_PRELOAD={LIBRARY}", "ls", RATION_LIMIT="1GiB").of("preload_by_run"), [])


def by_run(folder):
    file = pathlib.Path(folder) / "file.json"
    file.write_text('{"limit": "1GiB"}')
    doctor(RATION_CONFIG=file).expect("preload_by_run", "a file sets a limit")
    for settings in ({"RATION_CONFIG": file}, {"RATION_LIMIT": "1GiB"}):
        doctor("--", PROBE, **settings).expect("preload_by_run", "how the command would fare under ration run", remedy="start it with ration run")
    for command in (["env", "-i", PROBE], ["ration", "run", "--", PROBE]):
        expect(f"{command}", doctor("--", *command, RATION_LIMIT="1GiB", PATH=f"{RATION.parent}:/usr/bin:/bin").of("preload_by_run"), [])


def noexec(folder):
    lib = pathlib.Path(folder) / "installed/lib"
    prefix = copied_installation(folder)
    wrapper = in_namespaces("--mount", script=f"cp -r {lib} {folder}/kept; mount -t tmpfs -o noexec none {lib}; cp -r {folder}/kept/* {lib}")
    doctor(ration=prefix / "bin/ration", wrapper=wrapper).expect("library_noexec", "libration.so lies on a file system that is mounted noexec")


def other_library(folder):
    prefix = copied_installation(folder)
    shutil.copy(INTERPOSER, prefix / "lib/libration.so")
    doctor(ration=prefix / "bin/ration").expect("library_other", "libration.so is another library")


def damaged(prefix):
    """The names of needed functions are no names of the C library's any more."""
    change_bytes(prefix / "lib/libration-core.so", b"\0pthread_create\0", b"\0pthread_cxxxxx\0")


def foreign_driver(folder):
    """A driver for another machine is named."""
    content = bytearray(CUDA.read_bytes())
    content[18:20] = b"\x34\x12"  # e_machine
    made = pathlib.Path(folder) / "foreign"
    made.mkdir()
    (made / "libcuda.so.1").write_bytes(content)
    doctor(LD_LIBRARY_PATH=f"{made}:{SIMULATOR}").expect("drivers_several", f"{made}/libcuda.so.1 (for another machine, so passed over)")


def elsewhere(folder):
    prefix = copied_installation(folder)
    doctor(LD_PRELOAD=prefix / "lib/libration.so").expect("preload_elsewhere", str(prefix), str(BUILD))
    lone = pathlib.Path(folder) / "lone"
    lone.mkdir()
    for make in (shutil.copy, os.symlink):
        make(LIBRARY, lone / "libration.so")
        for settings in ({"LD_PRELOAD": lone / "libration.so"}, {"LD_PRELOAD": "libration.so", "LD_LIBRARY_PATH": f"{lone}:{SIMULATOR}"}):
            for arguments in ((), ("--", PROBE), ("--", "env", "A=1", PROBE)):
                doctor(*arguments, **settings).expect("library_missing", f"{lone}/libration-core.so: No such file")
        (lone / "libration.so").unlink()
    shutil.copy(LIBRARY, lone)
    with running(*steps("load"), LD_PRELOAD=lone / "libration.so") as pid:
        doctor("--pid", pid).expect("library_missing", "without libration-core.so")
    shutil.copy(BUILD / "lib/libration-core.so", lone)
    os.truncate(lone / "libration-core.so", 20000)
    doctor("--", "env", f"LD_PRELOAD={lone}/libration.so", PROBE).expect("library_cut_short", f"{lone}/libration-core.so is not a complete ELF file")
    shutil.copy(BUILD / "lib/libration-core.so", lone)
    (lone / "libration.so").rename(lone / "libration.so.1")
    (lone / "renamed.so").symlink_to("libration.so.1")
    for name in ("libration.so.1", "renamed.so"):
        for arguments in ((), ("--", PROBE)):
            answer = doctor(*arguments, LD_PRELOAD=lone / name, RATION_LIMIT="2GiB")
            expect(f"{name} works: {answer.text}", answer.status, 0)
    shutil.copy(INTERPOSER, lone / "libration.so")
    doctor("--", PROBE, LD_PRELOAD=lone / "libration.so").expect("preload_gone", f"{lone}/libration.so is another library")


def not_loaded(folder):
    doctor(LD_PRELOAD="/nowhere/libration.so").expect("preload_gone", "/nowhere/libration.so: No such file")
    (pathlib.Path(folder) / "libration.so").touch()
    for arguments in ((), ("--", PROBE), ("--", "nice", PROBE)):
        doctor(*arguments, LD_PRELOAD=f"{folder}/libration.so").expect("preload_gone", f"{folder}/libration.so: file too short")
        doctor(*arguments, LD_PRELOAD="libration.so").expect("preload_gone", "libration.so: cannot open shared object file")
    doctor("--", "env", f"LD_PRELOAD={folder}/libration.so", PROBE).expect("preload_gone", "file too short")
    link, other = pathlib.Path(folder) / "link.so", pathlib.Path(folder) / "libcalibration.so"
    link.symlink_to("gone/libration.so")
    library = str(LIBRARY)
    for entry, cause in ((library + "\n", "a line feed"), ("\t" + library, "a tab"), (library + "\r", "a carriage return"),
                         (f"“{library}”", "typographic quotation marks"), (library + "\u00a0", "a non-breaking blank"), (f'"{library}"', ""),
                         (f"{library};/x.so", ""), (str(LIBRARY.parent), ""), (str(BUILD / "lib/libration-core.so"), "another library"), (str(link), "")):
        for arguments in ((), ("--", PROBE)):
            doctor(*arguments, LD_PRELOAD=entry, RATION_LIMIT="2GiB").expect("preload_gone", "LD_PRELOAD names", cause)
    expect("another library's", doctor("--", PROBE, LD_PRELOAD=other).of("preload_gone"), [])


def interposer(folder):
    doctor(LD_PRELOAD=f"{LIBRARY}:{INTERPOSER}").expect("preload_interposer", "LD_PRELOAD has", INTERPOSER.name)
    doctor(wrapper=with_etc(folder, **{"ld.so.preload": f"{INTERPOSER}\n"})).expect("preload_interposer", "/etc/ld.so.preload has", INTERPOSER.name)


CASES = {
    "library_missing": missing,
    "library_unreadable": of_copy(unreadable, "library_unreadable", "libration-core.so: Permission denied",
                                  wrapper=as_nobody if IS_ROOT else tuple),
    "library_cut_short": of_copy(cut_short, "library_cut_short", "libration-core.so is not a complete ELF file"),
    "library_architecture": of_copy(other_machine, "library_architecture", "libration-core.so was built for another machine"),
    "library_old_c_library": of_copy(newer_c_library, "library_old_c_library", "lacks the version GLIBC_9."),
    "library_path": path_with_blank,
    "library_noexec": noexec,
    "library_other": other_library,
    "library_damaged": of_copy(damaged, "library_damaged", "libration-core.so: "),
    "library_other_build": of_copy(other_build, "library_other_build", "is of another build than its core"),
    "hooks_silent": of_copy(without_start, "hooks_silent", "met no hook; it said: ", "cannot start its core"),
    "simulator_missing": of_copy(lambda prefix: shutil.rmtree(prefix / "lib/ration/sim"), "simulator_missing", "lib/ration/sim"),
    "driver_missing": with_drivers("driver_missing", "libcuda.so.1 cannot be loaded", cuda=None),
    "driver_is_stub": stub,
    "driver_incomplete": with_drivers("driver_incomplete", "lacks cuDeviceGet, ", "cuMemAlloc_v2", cuda=PLANTED / "lacking/libcuda.so.1"),
    "driver_fails": fails,
    "drivers_several": several,
    "driver_versions": versions,
    "device_none": without_device,
    "device_mig": with_drivers("device_mig", "GPU-00000000-0000-0000-0000-00000000cafe is split by MIG", nvml=PLANTED / "mig/libnvidia-ml.so.1"),
    "device_mps": with_variables("device_mps", "CUDA_MPS_PIPE_DIRECTORY=/tmp/mps", CUDA_MPS_PIPE_DIRECTORY="/tmp/mps"),
    "device_driver_limit": driver_limit,
    "device_kernel_limit": kernel_limit,
    "device_smaller_than_limit": smaller_than_limit,
    "device_hidden": with_variables("device_hidden", "CUDA_VISIBLE_DEVICES=0,7 lists 2, and programs get 1 device", CUDA_VISIBLE_DEVICES="0,7"),
    "nvml_missing": with_drivers("nvml_missing", "libnvidia-ml.so.1", nvml=None),
    "preload_absent": absent,
    "preload_by_run": by_run,
    "preload_gone": not_loaded,
    "preload_elsewhere": elsewhere,
    "preload_interposer_first": with_variables("preload_interposer_first", f"{INTERPOSER.name} comes before libration.so in LD_PRELOAD",
                                               LD_PRELOAD=f"{INTERPOSER}:{LIBRARY}"),
    "preload_interposer": interposer,
}
