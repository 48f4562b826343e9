#!/usr/bin/env python3
"""Managed memory: used by host and device in turn, with advice, prefetches and queries: managed.py [fill]"""
import ctypes
import sys

import numpy
from cuda.bindings import driver

from gpu import MIB, code_of, done, fill, on_device, on_host, pattern, read, same, start, write

GLOBAL, OF_HOST = 1, 2  # CU_MEM_ATTACH_*
PAGE = 64 << 10
ADVICE = driver.CUmem_advise
RANGE = driver.CUmem_range_attribute
ASKED = (RANGE.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, RANGE.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
         RANGE.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
ACCESSED_BY = RANGE.CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY


def take(size, flags=GLOBAL):
    return done(driver.cuMemAllocManaged(size, flags))


def by_host(address, size):
    """The memory on the host, at the same address."""
    return numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(address)))


def in_turn():
    address = take(4 * MIB)
    seen, given = by_host(address, 4 * MIB), pattern(1, 4 * MIB)
    seen[:] = given
    print(f"the host wrote, the device reads: {same(read(address, 4 * MIB), given)}")
    done(driver.cuMemsetD32(address, 0x01020304, MIB))
    done(driver.cuCtxSynchronize())
    print(f"the device wrote, the host reads: {same(seen, numpy.tile(numpy.uint8([4, 3, 2, 1]), MIB))}")
    write(driver.CUdeviceptr(int(address) + MIB), given[:MIB])
    print(f"a part of it: {same(seen[MIB:2 * MIB], given[:MIB])}, the rest {seen[:MIB].sum() == MIB // 4 * 10}")
    done(driver.cuMemFree(address))


def attributes_of(address, size):
    sizes = [4] * len(ASKED)
    both = done(driver.cuMemRangeGetAttributes(sizes, list(ASKED), len(ASKED), address, size))
    alone = [done(driver.cuMemRangeGetAttribute(4, attribute, address, size)) for attribute in ASKED]
    accessed = done(driver.cuMemRangeGetAttribute(8, ACCESSED_BY, address, size))
    return f"{[int(value) for value in both]} {[int(value) for value in alone]} accessed by {list(accessed)}"


def advised(device):
    address, size = take(16 * PAGE), 16 * PAGE
    stream = done(driver.cuStreamCreate(0))
    second = driver.CUdeviceptr(int(address) + 8 * PAGE)
    print(f"before any advice: {attributes_of(address, size)}")
    done(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_SET_READ_MOSTLY, on_device()))
    done(driver.cuMemAdvise(second, 8 * PAGE, ADVICE.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_host()))
    done(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_SET_ACCESSED_BY, on_device(int(device))))
    print(f"the whole: {attributes_of(address, size)}")
    print(f"its second half: {attributes_of(second, 8 * PAGE)}")
    done(driver.cuMemPrefetchAsync(address, size, on_device(int(device)), 0, stream))
    done(driver.cuStreamSynchronize(stream))
    print(f"prefetched to the device: {attributes_of(address, size)}")
    done(driver.cuMemPrefetchAsync(address, 4 * PAGE, on_host(), 0, stream))
    done(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_UNSET_READ_MOSTLY, on_device()))
    done(driver.cuMemAdvise(address, size, ADVICE.CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, on_device()))
    done(driver.cuStreamSynchronize(stream))
    print(f"its first quarter, back at the host: {attributes_of(address, 4 * PAGE)}")
    print(f"beyond its end: {code_of(driver.cuMemPrefetchAsync(second, size, on_host(), 0, stream))}")
    print(f"to no device: {code_of(driver.cuMemPrefetchAsync(address, size, on_device(99), 0, stream))}")
    done(driver.cuStreamDestroy(stream))
    done(driver.cuMemFree(address))
    plain = done(driver.cuMemAlloc(size))
    print(f"advice on plain memory: {code_of(driver.cuMemAdvise(plain, size, ADVICE.CU_MEM_ADVISE_SET_READ_MOSTLY, on_device()))}")
    done(driver.cuMemFree(plain))


def attached():
    address = take(MIB, OF_HOST)
    stream = done(driver.cuStreamCreate(0))
    done(driver.cuStreamAttachMemAsync(stream, address, 0, 4))  # CU_MEM_ATTACH_SINGLE
    done(driver.cuMemsetD8Async(address, 7, MIB, stream))
    done(driver.cuStreamSynchronize(stream))
    print(f"attached to a stream: {same(by_host(address, MIB), numpy.full(MIB, 7, dtype=numpy.uint8))}")
    done(driver.cuMemFreeAsync(address, stream))
    done(driver.cuStreamSynchronize(stream))
    done(driver.cuStreamDestroy(stream))


def pointers(device):
    address = take(3 * MIB)
    inside = driver.CUdeviceptr(int(address) + MIB)
    wanted = driver.CUpointer_attribute
    found = done(driver.cuPointerGetAttributes(4, [
        wanted.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, wanted.CU_POINTER_ATTRIBUTE_IS_MANAGED,
        wanted.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, wanted.CU_POINTER_ATTRIBUTE_RANGE_SIZE], inside))
    print(f"pointer: {[int(value) for value in found]} device {int(device)}")
    base, size = done(driver.cuMemGetAddressRange(inside))
    print(f"range: {int(inside) - int(base)} into {size}")
    done(driver.cuMemFree(address))
    print(f"no bytes: {code_of(driver.cuMemAllocManaged(0, GLOBAL))}, no flags: {code_of(driver.cuMemAllocManaged(MIB, 0))}")


def fill_with_it():
    fill(lambda count: take(count * 8 * MIB), lambda address: done(driver.cuMemFree(address)),
         lambda address, given: by_host(address, MIB).__setitem__(slice(None), given), lambda address: read(address, MIB))


def main():
    device = start()
    if "fill" in sys.argv[1:]:
        fill_with_it()
        return
    in_turn()
    advised(device)
    attached()
    pointers(device)


main()
