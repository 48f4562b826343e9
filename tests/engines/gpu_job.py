"""What jobs of the engines do on their device, in whichever process an engine runs them: the driver API by ctypes."""
import ctypes
import os

MIB = 1 << 20


def driver():
    """The driver, with the primary context of device 0 current in this thread."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)):
        if result:
            raise RuntimeError(f"no context: CUDA error {result}")
    return cuda


def sizes():
    """(free, total) bytes of the device, as a program sees them."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def take(size):
    """(CUDA's result, the block)"""
    block = ctypes.c_uint64()
    return driver().cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)), block.value


def give_back(block):
    return driver().cuMemFree_v2(ctypes.c_uint64(block))


def fill():
    """Takes all that it gets, in pieces down to 1 MiB; how many bytes that is."""
    got, piece = 0, 256 * MIB
    while piece >= MIB:
        if take(piece)[0] == 0:
            got += piece
        else:
            piece //= 2
    return got


def fill_whole_share():
    """What a job that fills its share has seen and got, and where it runs."""
    before = sizes()
    return {"pid": os.getpid(), "free": before[0], "total": before[1], "got": fill(), "left": sizes()[0]}


def surroundings():
    """Whether the library is loaded here, and its settings."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        loaded = any(line.rstrip().endswith("/libration.so") for line in maps)
    settings = {key: value for key, value in os.environ.items() if key.startswith("RATION_")}
    return {"pid": os.getpid(), "loaded": loaded, "settings": settings}


def ray_setup():
    """The setup function of a program that has one of its own."""
    from ration_gpu import ray
    ray.setup()
