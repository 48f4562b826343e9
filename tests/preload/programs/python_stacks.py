"""Allocates on paths that the test knows by name, through ctypes, which gives up the interpreter's lock."""
import ctypes
import threading

cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20


def größe(bytes_wanted):
    address = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(bytes_wanted)) == 0
    return address


class Holder:
    def keep(self):
        yield größe(1 * MIB)
        yield größe(
            2 * MIB)


def work():
    context = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    for _ in Holder().keep():
        pass


assert cuda.cuInit(0) == 0
work()
thread = threading.Thread(target=work)
thread.start()
thread.join()

# Code objects of one name, each of another file, each freed before the next is made.
for number in range(40):
    exec(compile("größe(4 * MIB)\n", f"<cell {number}>", "exec"))
