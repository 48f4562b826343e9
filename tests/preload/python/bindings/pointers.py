#!/usr/bin/env python3
"""Pointer attributes and pinned host memory: pointers.py [fill]"""
import ctypes
import mmap
import sys

import numpy
from cuda.bindings import driver

from gpu import MIB, code_of, done, fill, pattern, read, same, start, write

ASKED = driver.CUpointer_attribute
ATTRIBUTES = (ASKED.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ASKED.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
              ASKED.CU_POINTER_ATTRIBUTE_IS_MANAGED, ASKED.CU_POINTER_ATTRIBUTE_MAPPED)
RANGE = (ASKED.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, ASKED.CU_POINTER_ATTRIBUTE_RANGE_SIZE)
PORTABLE, DEVICE_MAP, WRITE_COMBINED = 1, 2, 4  # CU_MEMHOSTALLOC_*


def at(address, offset):
    return driver.CUdeviceptr(int(address) + offset)


def attributes_of(address):
    return [int(value) for value in done(driver.cuPointerGetAttributes(len(ATTRIBUTES), list(ATTRIBUTES), address))]


def of_device_memory():
    for size in (1, 511, 512, 4096, MIB, 40 * MIB):
        block = done(driver.cuMemAlloc(size))
        last = at(block, size - 1)
        base, whole = done(driver.cuMemGetAddressRange(last))
        begin, length = (int(done(driver.cuPointerGetAttribute(attribute, last))) for attribute in RANGE)
        both = done(driver.cuPointerGetAttributes(2, list(RANGE), last))
        print(f"{size} bytes: range {int(base) == int(block)} {whole}, {begin == int(block)} {length}, "
              f"{int(both[0]) == int(block)} {int(both[1])}, {attributes_of(last)}, aligned {int(block) % 256 == 0}")
        here = int(done(driver.cuPointerGetAttribute(ASKED.CU_POINTER_ATTRIBUTE_DEVICE_POINTER, last)))
        print(f"  the device has it at {here - int(block)}")
        context = done(driver.cuPointerGetAttribute(ASKED.CU_POINTER_ATTRIBUTE_CONTEXT, last))
        print(f"  its context is current: {int(context) == int(done(driver.cuCtxGetCurrent()))}")
        done(driver.cuMemFree(block))
    rows, pitch = done(driver.cuMemAllocPitch(1000, 30, 8))
    print(f"pitched: {pitch >= 1000} {done(driver.cuMemGetAddressRange(at(rows, 29 * pitch + 999)))[1] >= 29 * pitch + 1000}")
    done(driver.cuMemFree(rows))


def of_no_memory():
    print(f"null: range {code_of(driver.cuMemGetAddressRange(0))}, attribute {code_of(driver.cuPointerGetAttribute(ATTRIBUTES[0], 0))}, "
          f"attributes {attributes_of(0)}, free {code_of(driver.cuMemFree(0))}")
    mine = numpy.zeros(4096, dtype=numpy.uint8)
    print(f"unknown: range {code_of(driver.cuMemGetAddressRange(mine.ctypes.data))}, "
          f"attribute {code_of(driver.cuPointerGetAttribute(ATTRIBUTES[0], mine.ctypes.data))}, free {code_of(driver.cuMemFree(mine.ctypes.data))}")
    block = done(driver.cuMemAlloc(4096))
    print(f"not its beginning: {code_of(driver.cuMemFree(at(block, 256)))}")
    done(driver.cuMemFree(block))
    print(f"freed twice: {code_of(driver.cuMemFree(block))}")


def seen(address, size):
    return numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(address)))


def pinned():
    for name, take in {"plain": lambda: driver.cuMemAllocHost(MIB), "flags": lambda: driver.cuMemHostAlloc(MIB, PORTABLE | DEVICE_MAP),
                       "combined": lambda: driver.cuMemHostAlloc(MIB, WRITE_COMBINED)}.items():
        address = done(take())
        given = pattern(1, MIB)
        seen(address, MIB)[:] = given
        block = done(driver.cuMemAlloc(MIB))
        done(driver.cuMemcpyHtoDAsync(block, address, MIB, 0))
        done(driver.cuStreamSynchronize(0))
        mapped = done(driver.cuMemHostGetDevicePointer(address, 0))
        print(f"{name}: {same(read(block, MIB), given)}, as the device sees it {same(read(mapped, MIB), given)}, "
              f"flags {done(driver.cuMemHostGetFlags(address))}, {attributes_of(address)}")
        done(driver.cuMemFree(block))
        done(driver.cuMemFreeHost(address))
    print(f"nothing: {code_of(driver.cuMemHostAlloc(0, 0))}")


def registered():
    pages = mmap.mmap(-1, 2 * MIB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    done(driver.cuMemHostRegister(address, 2 * MIB, PORTABLE))
    block = done(driver.cuMemAlloc(2 * MIB))
    given = pattern(2, 2 * MIB)
    write(block, given)
    done(driver.cuMemcpyDtoHAsync(address, block, 2 * MIB, 0))
    done(driver.cuStreamSynchronize(0))
    print(f"registered: {same(seen(address, 2 * MIB), given)}, {attributes_of(address)}, once more {code_of(driver.cuMemHostRegister(address, MIB, 0))}")
    done(driver.cuMemHostUnregister(address))
    print(f"unregistered: {code_of(driver.cuMemHostUnregister(address))}")
    done(driver.cuMemFree(block))


def fill_with_device_memory():
    """The largest single piece is the device without one granule."""
    fill(lambda count: done(driver.cuMemAlloc(count * 8 * MIB - 4096)), lambda block: done(driver.cuMemFree(block)), write,
         lambda block: read(block, MIB))


def main():
    start()
    if "fill" in sys.argv[1:]:
        fill_with_device_memory()
        return
    of_device_memory()
    of_no_memory()
    pinned()
    registered()


main()
