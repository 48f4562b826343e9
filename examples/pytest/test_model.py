"""Tests of a program that uses a GPU, which stands in for one that needs a framework."""
import ctypes

import pytest

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")


@pytest.fixture(autouse=True)
def context():
    cuda.cuInit(0)
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle := ctypes.c_void_p()), 0) == 0
    cuda.cuCtxSetCurrent(handle)


def tensor(mib):
    block = ctypes.c_uint64()
    if cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(mib * MIB)) != 0:
        raise MemoryError(f"{mib} MiB")
    return block


def test_device():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print(f"the device has {total.value // MIB} MiB")


def test_step():
    block = tensor(512)
    cuda.cuMemFree_v2(block)


def test_cache():
    tensor(48)


@pytest.mark.ration("2GiB")
def test_fits_a_small_card():
    weights, gradients = tensor(1200), tensor(1200)
    assert weights and gradients
