"""Buffers of cuda-core's memory resources, copied to the device and back, and the memory pool's figures."""
import ctypes

import numpy
from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions, LegacyPinnedMemoryResource, VirtualMemoryResource

MIB = 1 << 20
SIZES = (1, 4097, MIB + 1, 12 * MIB)


def bytes_of(buffer):
    return numpy.ctypeslib.as_array(ctypes.cast(int(buffer.handle), ctypes.POINTER(ctypes.c_ubyte)), (buffer.size,))


def there_and_back(name, resource, host, stream):
    for asked in SIZES:
        there = resource.allocate(asked, stream=stream)
        source, target = host.allocate(there.size, stream=stream), host.allocate(there.size, stream=stream)
        values = (numpy.arange(there.size, dtype=numpy.uint32) * 2654435761 + asked >> 13).astype(numpy.uint8)
        bytes_of(source)[:] = values
        bytes_of(target)[:] = 0
        there.copy_from(source, stream=stream)
        there.copy_to(target, stream=stream)
        stream.sync()
        print(f"{name}: {asked} asked, {there.size} given,", "the same" if (bytes_of(target) == values).all() else "other bytes")
        there.fill(b"\x5a", stream=stream)
        there.copy_to(target, stream=stream)
        stream.sync()
        print(f"{name}: filled,", "the same" if (bytes_of(target) == 0x5a).all() else "other bytes")
        for buffer in (there, source, target):
            buffer.close(stream)
    stream.sync()


def kept(device, stream):
    """The figures of a pool of one's own, with a block and without."""
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions())
    block = pool.allocate(3 * MIB, stream=stream)
    print("used:", pool.attributes.used_mem_current, "high:", pool.attributes.used_mem_high)
    block.close(stream)
    stream.sync()
    print("used:", pool.attributes.used_mem_current, "high:", pool.attributes.used_mem_high)
    pool.close()


def main():
    device = Device(0)
    device.set_current()
    print(device.name, device.compute_capability, device.properties.multiprocessor_count)
    host, stream = LegacyPinnedMemoryResource(), device.create_stream()
    for name, resource in {"default": device.memory_resource, "own pool": DeviceMemoryResource(device, DeviceMemoryResourceOptions()),
                           "mapped": VirtualMemoryResource(device)}.items():
        there_and_back(name, resource, host, stream)
    kept(device, stream)
    print("the end")


main()
