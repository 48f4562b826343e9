#!/usr/bin/env python3
"""exchange_test.py COUNT [SEED] [vmm]: processes exchange blocks at random, free them while they are open, and are killed; every
read returns the bytes that the block's owner wrote."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from peers import INVALID_VALUE, Peers  # noqa: E402
from harness import expect, expect_that, main  # noqa: E402

COUNT = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
PEERS = 3
MOST_BLOCKS = 12  # of a peer


class Block:
    """The expected state of a block: owner, size, bytes, and whether it was freed."""

    def __init__(self, owner, index, size, value):
        self.owner, self.index, self.size, self.value = owner, index, size, value
        self.token, self.live = None, True


class Trader:
    def __init__(self, machine):
        self.peer, self.taken, self.opens = machine.peer(), 0, 0
        self.blocks = []  # its own, live
        self.opened = {}  # index among the opened blocks -> block

    def take(self, size, value):
        code = self.peer.code(f"take {size} {value}")
        index, self.taken = self.taken, self.taken + 1
        if code != "0":
            expect("a refusal", code, "2")
            return
        self.blocks.append(Block(self, index, size, value))


class Market:
    def __init__(self, machine, chance):
        self.machine, self.chance = machine, chance
        self.traders = [Trader(machine) for _ in range(PEERS)]
        self.dead_tokens = []
        self.exchanges = self.kills = self.freed_open = 0

    def check(self, trader):
        for block in trader.blocks:
            expect("own bytes", trader.peer.do(f"read own{block.index} {block.size}"), str(block.value))
        for index, block in trader.opened.items():
            expect("opened bytes", trader.peer.do(f"read opened{index} {block.size}"), str(block.value))

    def exchange(self):
        owner, other = self.chance.sample(self.traders, 2)
        if not owner.blocks:
            return
        block = self.chance.choice(owner.blocks)
        block.token = block.token or owner.peer.share(f"own{block.index}")
        other.peer.do(f"open {block.token}")
        index, other.opens = other.opens, other.opens + 1
        other.opened[index] = block
        expect("bytes of another process", other.peer.do(f"read opened{index} {block.size}"), str(block.value))
        expect("range", other.peer.do(f"range opened{index}"), f"1 {block.size}")
        block.value = self.chance.randrange(256)
        other.peer.do(f"write opened{index} {block.value} {block.size}")
        expect("bytes that came back", owner.peer.do(f"read own{block.index} {block.size}"), str(block.value))
        self.exchanges += 1

    def free(self):
        trader = self.chance.choice(self.traders)
        if trader.blocks:
            block = trader.blocks.pop(self.chance.randrange(len(trader.blocks)))
            trader.peer.do(f"free own{block.index}")
            block.live = False
            self.freed_open += any(block in one.opened.values() for one in self.traders)
            if block.token:
                self.dead_tokens.append(block.token)

    def close(self):
        trader = self.chance.choice(self.traders)
        if trader.opened:
            index = self.chance.choice(list(trader.opened))
            block = trader.opened.pop(index)
            trader.peer.do(f"close opened{index}")
            if not any(block is one for one in trader.opened.values()):
                expect("closed", trader.peer.code(f"range opened{index}") != "0", True)

    def try_dead(self):
        if self.dead_tokens:
            trader = self.chance.choice(self.traders)
            expect("a dead token", trader.peer.code(f"open {self.chance.choice(self.dead_tokens[-50:])}"), INVALID_VALUE)

    def kill(self):
        """Kills it while it carries out a last order."""
        victim = self.chance.choice(self.traders)
        orders = [f"free own{block.index}" for block in victim.blocks] + [f"close opened{index}" for index in victim.opened]
        orders += [f"share own{block.index}" for block in victim.blocks]
        orders += [f"open {block.token}" for trader in self.traders for block in trader.blocks if block.token]
        for order in self.chance.sample(orders, min(len(orders), 3)):
            victim.peer.member.send(order)
        for _ in range(self.chance.randrange(2000)):
            pass
        victim.peer.kill()
        self.kills += 1
        self.dead_tokens += [block.token for block in victim.blocks if block.token]
        for block in victim.blocks:
            block.live = False
        self.traders.remove(victim)
        self.traders.append(Trader(self.machine))

    def turn(self):
        trader = self.chance.choice(self.traders)
        if len(trader.blocks) < MOST_BLOCKS:
            trader.take(int(2 ** self.chance.uniform(0, 20)), self.chance.randrange(256))
        self.exchange()
        for step, share in ((self.free, 0.6), (self.close, 0.9), (self.try_dead, 0.1), (self.kill, 0.02)):
            if self.chance.random() < share or (step == self.kill and self.exchanges % 100 == 50):
                step()
        for trader in self.traders:
            if len(trader.opened) > 2 * MOST_BLOCKS:
                self.close()
        if self.chance.random() < 0.05:
            self.check(self.chance.choice(self.traders))


def exchange(folder):
    print(f"seed {SEED}", flush=True)
    with Peers(folder, RATION_LIMIT="48MiB") as machine:
        market = Market(machine, random.Random(SEED))
        while market.exchanges < COUNT:
            market.turn()
        for trader in market.traders:
            market.check(trader)
        for trader in market.traders:
            trader.peer.end()
        machine.ps()
        expect("files left", machine.files(), [])
        print(f"{market.exchanges} exchanges, {market.kills} kills, {market.freed_open} freed while open", flush=True)
        expect_that("some were freed while open", market.freed_open > COUNT / 20)
        expect_that("some were killed", market.kills > 0)


main({"blocks change hands": exchange})
