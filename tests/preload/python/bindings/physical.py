#!/usr/bin/env python3
"""Physical memory and its mappings: physical.py [fill]"""
import sys

from cuda.bindings import driver

from gpu import MIB, code_of, done, fill, on_device, pattern, read, same, start, writable, write

PINNED = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
MINIMUM = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
ADDRESS = driver.CUdeviceptr


def properties():
    wanted = driver.CUmemAllocationProp()
    wanted.type = PINNED
    wanted.location = on_device()
    return wanted


def mapped(handle, size, at=None, offset=0):
    address = at if at is not None else done(driver.cuMemAddressReserve(size, 0, 0, 0))
    done(driver.cuMemMap(address, size, offset, handle, 0))
    done(driver.cuMemSetAccess(address, size, [writable(on_device())], 1))
    return address


def unmapped(address, size):
    done(driver.cuMemUnmap(address, size))
    done(driver.cuMemAddressFree(address, size))


def one_piece(granule):
    size = 4 * granule
    handle = done(driver.cuMemCreate(size, properties(), 0))
    found = done(driver.cuMemGetAllocationPropertiesFromHandle(handle))
    print(f"made: {found.type.name} on {found.location.type.name} {found.location.id}")
    address = done(driver.cuMemAddressReserve(size, 0, 0, 0))
    done(driver.cuMemMap(address, size, 0, handle, 0))
    print(f"without access: {code_of(driver.cuMemsetD8(address, 1, size))}")
    done(driver.cuMemSetAccess(address, size, [writable(on_device())], 1))
    print(f"access: {int(done(driver.cuMemGetAccess(on_device(), address)))}")
    given = pattern(1, size)
    write(address, given)
    print(f"data: {same(read(address, size), given)}")
    unmapped(address, size)
    again = mapped(handle, size)
    print(f"elsewhere: {same(read(again, size), given)}")
    print(f"its range: {[int(part) - int(again) * (i == 0) for i, part in enumerate(done(driver.cuMemGetAddressRange(again)))]}")
    done(driver.cuMemRelease(handle))
    print(f"released, still mapped: {same(read(again, size), given)}")
    unmapped(again, size)


def two_windows(granule):
    """One physical piece mapped at two addresses, and two pieces in one address range."""
    handle = done(driver.cuMemCreate(granule, properties(), 0))
    first, second = mapped(handle, granule), mapped(handle, granule)
    given = pattern(2, granule)
    write(first, given)
    print(f"the other window: {same(read(second, granule), given)}")
    unmapped(first, granule)
    print(f"one window left: {same(read(second, granule), given)}")
    unmapped(second, granule)

    other = done(driver.cuMemCreate(granule, properties(), 0))
    address = done(driver.cuMemAddressReserve(2 * granule, 0, 0, 0))
    mapped(handle, granule, address)
    mapped(other, granule, ADDRESS(int(address) + granule))
    both = pattern(3, 2 * granule)
    write(address, both)
    print(f"across both: {same(read(address, 2 * granule), both)}")
    done(driver.cuMemRelease(handle))
    done(driver.cuMemRelease(other))
    unmapped(address, 2 * granule)


def retained(granule):
    handle = done(driver.cuMemCreate(granule, properties(), 0))
    address = mapped(handle, granule)
    given = pattern(4, granule)
    write(address, given)
    same_one = done(driver.cuMemRetainAllocationHandle(int(address) + 4096))
    done(driver.cuMemRelease(handle))
    unmapped(address, granule)
    address = mapped(same_one, granule)
    print(f"retained: {same(read(address, granule), given)}")
    unmapped(address, granule)
    done(driver.cuMemRelease(same_one))
    plain = done(driver.cuMemAlloc(granule))
    print(f"plain memory has no handle: {code_of(driver.cuMemRetainAllocationHandle(int(plain)))}")
    done(driver.cuMemFree(plain))


def wrong(granule):
    print(f"no whole granule: {code_of(driver.cuMemCreate(granule + 1, properties(), 0))}")
    print(f"nothing: {code_of(driver.cuMemCreate(0, properties(), 0))}")
    handle = done(driver.cuMemCreate(granule, properties(), 0))
    address = done(driver.cuMemAddressReserve(2 * granule, 0, 0, 0))
    print(f"more than there is: {code_of(driver.cuMemMap(address, 2 * granule, 0, handle, 0))}")
    mapped(handle, granule, address)
    print(f"over what is mapped: {code_of(driver.cuMemMap(address, granule, 0, handle, 0))}")
    print(f"half of it unmapped: {code_of(driver.cuMemUnmap(address, granule // 2))}")
    print(f"freed while mapped: {code_of(driver.cuMemAddressFree(address, 2 * granule))}")
    print(f"freed as if allocated: {code_of(driver.cuMemFree(address))}")
    done(driver.cuMemUnmap(address, granule))
    done(driver.cuMemRelease(handle))
    done(driver.cuMemAddressFree(address, 2 * granule))


def fill_with_it(granule):
    def take(count):
        size = count * 4 * granule
        handle = done(driver.cuMemCreate(size, properties(), 0))
        address = mapped(handle, size)
        done(driver.cuMemRelease(handle))  # as programs do: the mapping keeps the memory
        return address, size

    fill(take, lambda piece: unmapped(*piece), lambda piece, given: write(piece[0], given), lambda piece: read(piece[0], MIB))


def main():
    start()
    granule = done(driver.cuMemGetAllocationGranularity(properties(), MINIMUM))
    if "fill" in sys.argv[1:]:
        fill_with_it(granule)
        return
    print(f"granule: {granule}")
    one_piece(granule)
    two_windows(granule)
    retained(granule)
    wrong(granule)


main()
