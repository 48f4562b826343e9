"""workers.py METHOD: a program that uses multiprocessing. It and its two workers allocate 400 MiB each; then it frees its
block, and the workers try again. Prints all codes."""
import ctypes
import multiprocessing
import sys

BYTES = 400 << 20


class Device:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        for code in (self.cuda.cuInit(0), self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)):
            if code:
                sys.exit(f"no context: {code}")
        self.block = ctypes.c_uint64()

    def take(self):
        return 0 if self.block.value else self.cuda.cuMemAlloc_v2(ctypes.byref(self.block), ctypes.c_size_t(BYTES))

    def give_back(self):
        return self.cuda.cuMemFree_v2(self.block)


def work(pipe):
    device = Device()
    while pipe.recv():
        pipe.send(device.take())


def started(method):
    context = multiprocessing.get_context(method)
    for _ in range(2):
        ours, theirs = context.Pipe()
        worker = context.Process(target=work, args=(theirs,))
        worker.start()
        theirs.close()
        yield worker, ours


def ask(workers):
    for _, pipe in workers:
        pipe.send(True)
    return sorted(pipe.recv() for _, pipe in workers)


def main(method):
    workers = list(started(method)) if method == "fork" else []  # before this process initialises the driver
    device = Device()
    parent = device.take()
    workers = workers or list(started(method))
    first = ask(workers)
    device.give_back()
    print(f"parent {parent}, workers {first}, then {ask(workers)}")
    for worker, pipe in workers:
        pipe.send(False)
        worker.join()
        if worker.exitcode:
            sys.exit(f"a worker ended with {worker.exitcode}")


if __name__ == "__main__":
    main(sys.argv[1])
