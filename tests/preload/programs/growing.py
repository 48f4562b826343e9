"""growing.py forever|cached|refused: trains; keeps a result of each step, or of the first ten, or asks for too much at the end; `fork`: twice."""
import ctypes
import os
import sys

cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
kept = []


def allocate(size):
    address = ctypes.c_uint64()
    if cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)):
        raise MemoryError(size)
    return address


def load_weights():
    loaded = []
    for _ in range(12):
        loaded.append(allocate(8 * MIB))
    return loaded


def remember():
    kept.append(allocate(MIB))


def step(number):
    activations = [allocate(2 * MIB) for _ in range(3)]
    if sys.argv[1] == "forever" or number < 10:
        remember()
    for each in activations:
        cuda.cuMemFree_v2(each)


if "fork" in sys.argv and (child := os.fork()):
    os.waitpid(child, 0)
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
weights = load_weights()
for turn in range(100):
    step(turn)
if sys.argv[1] == "refused":
    allocate(1024 * MIB)
for block in weights + kept:
    cuda.cuMemFree_v2(block)
