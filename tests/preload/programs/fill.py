"""fill.py LIBRARY: does what fill.h does, through ctypes."""
import ctypes
import sys

BLOCK, BEFORE = 100 << 20, 0x5A5A5A5A5A5A5A5A

cuda = ctypes.CDLL(sys.argv[1])
device, context = ctypes.c_int(), ctypes.c_void_p()
for code in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
             cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)):
    if code:
        sys.exit(f"no context: {code}")
blocks = 0
while True:
    address = ctypes.c_uint64(BEFORE)
    code = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(BLOCK))
    if code:
        break
    blocks += 1
print(f"blocks={blocks} code={code} null={int(address.value == 0)}")
