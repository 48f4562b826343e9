"""Takes device memory until it is refused: take.py [MIB_A_BLOCK [UNTIL]]. Prints how many blocks, and the last error code.

UNTIL: a named pipe to wait at before the end, so that what was taken is held meanwhile.
"""
import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
for code in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)):
    assert code == 0, code
size = ctypes.c_size_t(int((sys.argv + ["64"])[1]) << 20)
blocks = 0
while (code := cuda.cuMemAlloc_v2(ctypes.byref(pointer), size)) == 0:
    blocks += 1
print(blocks, code, flush=True)
if len(sys.argv) > 2:
    with open(sys.argv[2], encoding="utf-8") as pipe:
        pipe.read()
