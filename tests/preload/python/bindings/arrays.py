#!/usr/bin/env python3
"""Copies to and from CUDA arrays of every shape: arrays.py [fill]"""
import sys

import numpy
from cuda.bindings import driver

from gpu import code_of, done, fill, pattern, same, start

UINT8 = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
FLOAT = driver.CUarray_format.CU_AD_FORMAT_FLOAT
HALF = driver.CUarray_format.CU_AD_FORMAT_HALF
LAYERED, SURFACE, CUBEMAP, GATHER, DEFERRED = 1, 2, 4, 8, 128  # CUDA_ARRAY3D_*
ELEMENT = {UINT8: 1, HALF: 2, FLOAT: 4}
HOST, DEVICE, ARRAY = (driver.CUmemorytype.CU_MEMORYTYPE_HOST, driver.CUmemorytype.CU_MEMORYTYPE_DEVICE,
                       driver.CUmemorytype.CU_MEMORYTYPE_ARRAY)
SHAPES = {
    "1D": (5000, 0, 0, UINT8, 1, 0),
    "1D layered": (1000, 0, 7, FLOAT, 1, LAYERED),
    "2D": (300, 200, 0, FLOAT, 2, 0),
    "2D surface": (128, 64, 0, FLOAT, 4, SURFACE),
    "2D gather": (100, 50, 0, HALF, 1, GATHER),
    "2D layered": (64, 48, 5, HALF, 2, LAYERED),
    "2D layered surface": (64, 48, 3, UINT8, 4, LAYERED | SURFACE),
    "3D": (60, 50, 40, UINT8, 4, 0),
    "3D surface": (33, 17, 9, FLOAT, 1, SURFACE),
    "cubemap": (32, 32, 6, UINT8, 4, CUBEMAP),
    "cubemap layered": (32, 32, 12, HALF, 4, CUBEMAP | LAYERED),
}


def descriptor(width, height, depth, element, channels, flags):
    shape = driver.CUDA_ARRAY3D_DESCRIPTOR()
    shape.Width, shape.Height, shape.Depth = width, height, depth
    shape.Format, shape.NumChannels, shape.Flags = element, channels, flags
    return shape


def extent(shape):
    """Bytes in a row, rows in a plane, planes."""
    return shape.Width * ELEMENT[shape.Format] * shape.NumChannels, max(1, shape.Height), max(1, shape.Depth)


def copy3d(shape, stream=None, **sides):
    copy = driver.CUDA_MEMCPY3D()
    copy.WidthInBytes, copy.Height, copy.Depth = extent(shape)
    for side, place in sides.items():
        if isinstance(place, numpy.ndarray):
            setattr(copy, f"{side}MemoryType", HOST)
            setattr(copy, f"{side}Host", place.ctypes.data)
        elif isinstance(place, driver.CUdeviceptr):
            setattr(copy, f"{side}MemoryType", DEVICE)
            setattr(copy, f"{side}Device", place)
        else:
            setattr(copy, f"{side}MemoryType", ARRAY)
            setattr(copy, f"{side}Array", place)
        if not isinstance(place, driver.CUarray):
            setattr(copy, f"{side}Pitch", copy.WidthInBytes)
            setattr(copy, f"{side}Height", copy.Height)
    done(driver.cuMemcpy3D(copy) if stream is None else driver.cuMemcpy3DAsync(copy, stream))


def content(shape, number):
    width, height, depth = extent(shape)
    return pattern(number, width * height * depth)


def described(array):
    shape = done(driver.cuArray3DGetDescriptor(array))
    return (f"{shape.Width}x{shape.Height}x{shape.Depth} {driver.CUarray_format(shape.Format).name} x{shape.NumChannels} "
            f"flags {shape.Flags}")


def there_and_back(shape, array, number):
    """Copies from the host to the array, in stream order to another array and to linear memory, and back to the host."""
    given, seen = content(shape, number), numpy.zeros_like(content(shape, number))
    other = done(driver.cuArray3DCreate(shape))
    linear = done(driver.cuMemAlloc(given.nbytes))
    stream = done(driver.cuStreamCreate(0))
    copy3d(shape, src=given, dst=array)
    copy3d(shape, stream, src=array, dst=other)
    copy3d(shape, stream, src=other, dst=linear)
    done(driver.cuStreamSynchronize(stream))
    done(driver.cuMemcpyDtoH(seen.ctypes.data, linear, seen.nbytes))
    done(driver.cuStreamDestroy(stream))
    done(driver.cuMemFree(linear))
    done(driver.cuArrayDestroy(other))
    return same(given, seen)


def every_shape(device):
    for number, (name, of) in enumerate(SHAPES.items()):
        shape = descriptor(*of)
        array = done(driver.cuArray3DCreate(shape))
        print(f"{name}: {described(array)}, {there_and_back(shape, array, number)}")
        print(f"what it needs: {code_of(driver.cuArrayGetMemoryRequirements(array, device))}")
        done(driver.cuArrayDestroy(array))


def mapped_later(device):
    """Only arrays without memory of their own have memory requirements."""
    for name in ("2D", "2D layered", "3D"):
        shape = descriptor(*SHAPES[name])
        shape.Flags |= DEFERRED
        array = done(driver.cuArray3DCreate(shape))
        needs = done(driver.cuArrayGetMemoryRequirements(array, device))
        print(f"{name}, mapped later: {described(array)}, {needs.size} bytes in {needs.alignment}")
        done(driver.cuArrayDestroy(array))


def one_dimension():
    """The copies that only one-dimensional arrays have."""
    plain = driver.CUDA_ARRAY_DESCRIPTOR()
    plain.Width, plain.Height, plain.Format, plain.NumChannels = 4096, 0, UINT8, 1
    first, second = done(driver.cuArrayCreate(plain)), done(driver.cuArrayCreate(plain))
    given, seen = pattern(100, 4096), numpy.zeros(4096, dtype=numpy.uint8)
    done(driver.cuMemcpyHtoA(first, 0, given.ctypes.data, 4096))
    done(driver.cuMemcpyAtoA(second, 96, first, 96, 4000))
    done(driver.cuMemcpyAtoH(seen.ctypes.data, second, 96, 4000))
    print(f"from array to array: {same(given[96:], seen[:4000])}")
    shape = done(driver.cuArrayGetDescriptor(second))
    print(f"descriptor: {shape.Width}x{shape.Height} x{shape.NumChannels}")
    print(f"past its end: {code_of(driver.cuMemcpyHtoA(first, 4000, given.ctypes.data, 97))}")
    done(driver.cuArrayDestroy(first))
    done(driver.cuArrayDestroy(second))


def pitched():
    """Copies a part of a 2D array through pitched memory."""
    shape = descriptor(300, 40, 0, UINT8, 1, 0)
    array = done(driver.cuArray3DCreate(shape))
    copy3d(shape, src=content(shape, 200), dst=array)
    rows, pitch = done(driver.cuMemAllocPitch(100, 20, 4))
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType, copy.srcArray, copy.srcXInBytes, copy.srcY = ARRAY, array, 50, 10
    copy.dstMemoryType, copy.dstDevice, copy.dstPitch = DEVICE, rows, pitch
    copy.WidthInBytes, copy.Height = 100, 20
    done(driver.cuMemcpy2D(copy))
    seen = numpy.zeros((20, 100), dtype=numpy.uint8)
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType, copy.srcDevice, copy.srcPitch = DEVICE, rows, pitch
    copy.dstMemoryType, copy.dstHost, copy.dstPitch = HOST, seen.ctypes.data, 100
    copy.WidthInBytes, copy.Height = 100, 20
    done(driver.cuMemcpy2D(copy))
    print(f"a part of it: {same(content(shape, 200).reshape(40, 300)[10:30, 50:150], seen)}")
    done(driver.cuMemFree(rows))
    done(driver.cuArrayDestroy(array))


def mipmapped():
    for name, of in {"2D": (64, 32, 0, FLOAT, 1, SURFACE), "3D": (32, 16, 8, UINT8, 4, 0)}.items():
        pyramid = done(driver.cuMipmappedArrayCreate(descriptor(*of), 4))
        for level in range(4):
            array = done(driver.cuMipmappedArrayGetLevel(pyramid, level))
            shape = done(driver.cuArray3DGetDescriptor(array))
            print(f"mipmapped {name} level {level}: {described(array)}, {there_and_back(shape, array, 300 + level)}")
        print(f"level 4: {code_of(driver.cuMipmappedArrayGetLevel(pyramid, 4))}")
        done(driver.cuMipmappedArrayDestroy(pyramid))


def bad_shapes():
    for name, of in {"nothing": (0, 0, 0, UINT8, 1, 0), "three channels": (16, 16, 0, UINT8, 3, 0),
                     "five faces": (16, 16, 5, UINT8, 1, CUBEMAP), "as wide as nothing": (1 << 40, 1, 0, UINT8, 1, 0)}.items():
        print(f"{name}: {code_of(driver.cuArray3DCreate(descriptor(*of)))}")


def fill_with_arrays():
    part = descriptor(1024, 256, 0, UINT8, 4, 0)  # its first MiB

    def take(count):
        return done(driver.cuArray3DCreate(descriptor(1024, 1024, count if count > 1 else 0, UINT8, 4, LAYERED * (count > 1))))

    def get(array):
        seen = content(part, 0)
        copy3d(part, src=array, dst=seen)
        return seen

    fill(take, lambda array: done(driver.cuArrayDestroy(array)), lambda array, given: copy3d(part, src=given, dst=array), get)


def main():
    device = start()
    if "fill" in sys.argv[1:]:
        fill_with_arrays()
        return
    every_shape(device)
    mapped_later(device)
    one_dimension()
    pitched()
    mipmapped()
    bad_shapes()


main()
