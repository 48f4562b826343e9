#!/usr/bin/env python3
"""JAX: matrix product, gradient steps of a small network, a loop under jit, and an allocation that is refused.

Lines that begin with `= ` must be the same under any limit; those with `# ` are for the record.
"""
import jax
import jax.numpy as jnp
import numpy

MIB = 1 << 20
jax.config.update("jax_default_matmul_precision", "highest")


def say(what, value):
    print(f"= {what}: {value:.4g}" if isinstance(value, float) else f"= {what}: {value}", flush=True)


def note(what):
    figures = jax.devices()[0].memory_stats() or {}
    keys = ("bytes_in_use", "peak_bytes_in_use", "bytes_limit", "pool_bytes")
    kept = {key: figures[key] // MIB for key in keys if key in figures}
    print(f"# {what}, MiB: {kept}", flush=True)


def products(random):
    a = jnp.asarray(random.standard_normal((1500, 1500), dtype=numpy.float32))
    b = jnp.asarray(random.standard_normal((1500, 1500), dtype=numpy.float32))
    say("product", float(jnp.abs(jax.jit(jnp.matmul)(a, b)).sum()))
    say("sorted", float(jnp.sort(a.ravel())[::100_000].sum()))


def training(random):
    def loss(weights, images, labels):
        hidden = jax.lax.conv_general_dilated(images, weights["conv"], (2, 2), "SAME",
                                              dimension_numbers=("NHWC", "HWIO", "NHWC"))
        logits = jax.nn.relu(hidden).reshape(images.shape[0], -1) @ weights["out"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 10), axis=-1))

    weights = {"conv": jnp.asarray(random.standard_normal((3, 3, 3, 32), dtype=numpy.float32) * 0.1),
               "out": jnp.asarray(random.standard_normal((16 * 16 * 32, 10), dtype=numpy.float32) * 0.01)}
    step = jax.jit(jax.value_and_grad(loss))
    for turn in range(5):
        images = jnp.asarray(random.standard_normal((64, 32, 32, 3), dtype=numpy.float32))
        labels = jnp.asarray(random.integers(0, 10, 64))
        value, gradient = step(weights, images, labels)
        weights = jax.tree_util.tree_map(lambda one, slope: one - 0.1 * slope, weights, gradient)
        say(f"loss {turn}", float(value))


def loop():
    """Temporaries within one compiled program."""
    def body(i, total):
        block = jnp.full((1 << 20,), 1.0, jnp.float32) * (i + 1)
        return total + jnp.sum(jnp.sqrt(block)) / (1 << 20)
    say("loop", float(jax.jit(lambda: jax.lax.fori_loop(0, 50, body, jnp.float32(0)))()))


def churn(random):
    held, wrong = [], 0
    for turn in range(200):
        held.append((turn, jnp.full((int(2 ** random.uniform(8, 22)),), turn, jnp.int32)))
        if len(held) > 30:
            value, block = held.pop(int(random.integers(0, 30)))
            wrong += int((numpy.asarray(block) != value).sum())
    say("wrong elements", wrong)


def refusal():
    try:
        jax.device_put(jnp.zeros((1 << 40,), jnp.uint8)).block_until_ready()
        say("refused", "no")
    except Exception as failure:  # pylint: disable=broad-except; its class has moved between versions
        is_memory = "RESOURCE_EXHAUSTED" in str(failure) or "out of memory" in str(failure).lower()
        say("refused", "RESOURCE_EXHAUSTED" if is_memory else type(failure).__name__)
    say("goes on", float(jnp.ones((16 * MIB,), jnp.float32).sum()))


def main():
    print(f"# jax {jax.__version__} on {jax.devices()[0]}")
    note("at the start")
    random = numpy.random.default_rng(0)
    products(random)
    training(random)
    loop()
    churn(random)
    refusal()
    note("at the end")


if __name__ == "__main__":
    main()
