#!/usr/bin/env python3
"""What the driver says of device 0, as JSON; in a process of its own, which a crash of the driver's libraries cannot harm.

nvml.py            one object: name, uuid, driver, cuda, total, and NVML's view of them
nvml.py --serve    for each line on stdin one object: used and free bytes, and the bytes of each process that NVML lists;
                   from a CUDA context where there is no NVML. A process that serves keeps the device initialised
"""
import ctypes
import json
import sys

NO_DEVICE = (34, 100)  # the toolkit's stub; a driver without a device


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Process(ctypes.Structure):  # nvmlProcessInfo_v2_t, which the calls of version 3 fill
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


class Nvml:
    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.call("nvmlInit_v2")
        self.call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self.device))

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise OSError(f"{name} answered {status}")

    def text(self, name, *arguments):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, *arguments, buffer, len(buffer))
        return buffer.value.decode()

    def memory(self):
        figures = Memory()
        self.call("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(figures))
        return {"total": figures.total, "free": figures.free, "used": figures.used}

    def processes(self):
        count = ctypes.c_uint(256)
        rows = (Process * count.value)()
        self.call("nvmlDeviceGetComputeRunningProcesses_v3", self.device, ctypes.byref(count), rows)
        return {str(row.pid): row.bytes for row in rows[:count.value]}


def asked_nvml():
    try:
        nvml = Nvml()
    except OSError as failure:
        return {"present": False, "problem": str(failure)}
    found = {"present": True}
    for key, ask in {
        "name": lambda: nvml.text("nvmlDeviceGetName", nvml.device),
        "uuid": lambda: nvml.text("nvmlDeviceGetUUID", nvml.device),
        "driver": lambda: nvml.text("nvmlSystemGetDriverVersion"),
        "memory": nvml.memory,
        "processes": nvml.processes,
    }.items():
        try:
            found[key] = ask()
        except (OSError, AttributeError) as failure:
            found.setdefault("problems", []).append(str(failure))
    return found


def asked_cuda():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as failure:
        return {"problem": str(failure), "absent": True}
    status = cuda.cuInit(0)
    if status:
        return {"problem": f"cuInit answered {status}"} | ({"absent": True} if status in NO_DEVICE else {})
    version, name, uuid, total = ctypes.c_int(), ctypes.create_string_buffer(96), (ctypes.c_ubyte * 16)(), ctypes.c_size_t()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    cuda.cuDeviceGetName(name, 96, 0)
    (getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid)(ctypes.byref(uuid), 0)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0)
    digits = bytes(uuid).hex()
    parts = [digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]]
    return {"name": name.value.decode(), "uuid": "GPU-" + "-".join(parts), "total": total.value,
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}"}


def memory_of_context():
    """A function that returns what cuMemGetInfo says in a context of this process."""
    cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context):
        raise OSError("no context")

    def ask():
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return {"total": total.value, "free": free.value, "used": total.value - free.value}
    return ask


def serve():
    try:
        nvml = Nvml()
        ask, processes = nvml.memory, nvml.processes
        ask()
    except OSError:
        ask, processes = memory_of_context(), dict
    for _ in sys.stdin:
        answer = ask()
        try:
            answer["processes"] = processes()
        except (OSError, AttributeError):
            answer["processes"] = {}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        print(json.dumps(asked_cuda() | {"nvml": asked_nvml()}))
