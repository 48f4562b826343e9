"""Functions for the cuda.bindings programs: calls that raise the driver's code, byte patterns, and filling a device.

Like the programs, it knows nothing of Ration.
"""
import numpy
from cuda.bindings import driver

MIB = 1 << 20


class Refused(Exception):
    def __init__(self, code):
        super().__init__(code.name)
        self.code = code


def done(answer):
    """The values that a call returns after its code; raises Refused on an error."""
    code, *values = answer
    if code != driver.CUresult.CUDA_SUCCESS:
        raise Refused(code)
    return values[0] if len(values) == 1 else tuple(values)


def code_of(answer):
    return answer[0].name


def start():
    """Makes the device's primary context current and returns the device."""
    done(driver.cuInit(0))
    device = done(driver.cuDeviceGet(0))
    done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(device))))
    return device


def on_device(number=0):
    location = driver.CUmemLocation()
    location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    location.id = number
    return location


def on_host():
    location = driver.CUmemLocation()
    location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    return location


def writable(location):
    access = driver.CUmemAccessDesc()
    access.location = location
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


def pattern(number, size):
    return numpy.random.default_rng(number).integers(0, 256, size, dtype=numpy.uint8)


def write(address, content):
    done(driver.cuMemcpyHtoD(address, content.ctypes.data, content.nbytes))


def read(address, size):
    content = numpy.empty(size, dtype=numpy.uint8)
    done(driver.cuMemcpyDtoH(content.ctypes.data, address, size))
    return content


def same(content, other):
    return "same" if numpy.array_equal(content, other) else "OTHER BYTES"


def fill(take, give_back, put, get):
    """Allocates single pieces (`take(1)`) until refused, twice; then one piece as large as all of them. `put` writes a pattern
    of its own into each piece, and `get` reads it back."""
    count = 0
    for turn in ("at first", "again"):
        pieces, refused = [], None
        while refused is None:
            try:
                pieces.append(take(1))
                put(pieces[-1], pattern(len(pieces), MIB))
            except Refused as answer:
                refused = answer
        wrong = sum(not numpy.array_equal(get(piece), pattern(number, MIB)) for number, piece in enumerate(pieces, 1))
        for piece in pieces:
            give_back(piece)
        count = len(pieces)
        print(f"{turn}: {count} pieces, {wrong} with other bytes, then {refused}")
    whole = take(count)
    put(whole, pattern(0, MIB))
    print(f"all at once: {count} in one piece, {same(get(whole), pattern(0, MIB))}")
    give_back(whole)
