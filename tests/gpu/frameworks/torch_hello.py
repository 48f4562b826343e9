#!/usr/bin/env python3
"""PyTorch: matrix product, a small network in training, a CUDA graph, and an allocation that is refused.

Lines that begin with `= ` must be the same under any limit; those with `# ` are for the record.
"""
import torch

DEVICE = torch.device("cuda:0")
MIB = 1 << 20


def say(what, value):
    print(f"= {what}: {value:.6g}" if isinstance(value, float) else f"= {what}: {value}", flush=True)


def note(what):
    free, total = torch.cuda.mem_get_info()
    print(f"# {what}: free {free // MIB} MiB of {total // MIB} MiB", flush=True)


def prepare():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    print(f"# torch {torch.__version__} cuda {torch.version.cuda} cudnn {torch.backends.cudnn.version()}")


def products():
    a, b = torch.randn(1500, 1500), torch.randn(1500, 1500)
    product = a.to(DEVICE) @ b.to(DEVICE)
    say("product", product.double().abs().sum().item())
    say("sorted", torch.sort(product.flatten()).values[::100_000].double().sum().item())


def training():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(64 * 16 * 16, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for step in range(6):
        inputs, labels = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
        loss = torch.nn.functional.cross_entropy(network(inputs.to(DEVICE)), labels.to(DEVICE))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        say(f"loss {step}", round(loss.item(), 4))


def graph():
    inputs = torch.zeros(1024, 1024, device=DEVICE)
    weights = torch.randn(1024, 1024).to(DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.relu(inputs @ weights).sum()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        outputs = torch.relu(inputs @ weights).sum()
    for turn in range(3):
        inputs.copy_(torch.full((1024, 1024), float(turn + 1)))
        captured.replay()
        say(f"graph {turn}", float(outputs.item()))


def refusal():
    """More than the device has, or than the limit allows."""
    _, total = torch.cuda.mem_get_info()
    held = [torch.ones(256 * MIB // 4, device=DEVICE)]
    try:
        held.append(torch.empty(total, dtype=torch.uint8, device=DEVICE))
        say("refused", "no")
    except torch.OutOfMemoryError:
        say("refused", "torch.OutOfMemoryError")
    say("still there", float(held[0].sum().item()))
    held.append(torch.ones(64 * MIB // 4, device=DEVICE))
    say("goes on", float(held[-1].sum().item()))


def churn():
    """Blocks of many sizes that live for a while, each with a value of its own."""
    generator = torch.Generator().manual_seed(7)
    held, wrong = [], 0
    for turn in range(600):
        count = int(2 ** (8 + 15 * torch.rand(1, generator=generator).item()))
        held.append((turn, torch.full((count,), turn, dtype=torch.int32, device=DEVICE)))
        if len(held) > 40:
            value, block = held.pop(int(torch.randint(0, 40, (1,), generator=generator).item()))
            wrong += int((block != value).sum().item())
        if turn % 200 == 199:
            torch.cuda.empty_cache()
    say("wrong elements", wrong)


def main():
    prepare()
    note("at the start")
    products()
    training()
    graph()
    churn()
    refusal()
    allocated, reserved = torch.cuda.max_memory_allocated() // MIB, torch.cuda.max_memory_reserved() // MIB
    print(f"# peak allocated {allocated} MiB, reserved {reserved} MiB")
    torch.cuda.empty_cache()
    note("at the end")


if __name__ == "__main__":
    main()
