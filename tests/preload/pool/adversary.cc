// adversary ROUNDS SEED [contexts] [peer] [green] [across] [async]: six threads own blocks for a while and free them
// while work on them is still queued. In a round a block's owner fills it with its own pattern by its own stream,
// checks the bytes after synchronising that stream alone, queues work that writes or reads the block late, and frees it
// at once. `across`: work also in other contexts' streams; `async`: some frees are cuMemFreeAsync. Statuses: verdict.h.
#include <stdlib.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "adversary_worker.h"

namespace {

using namespace preload::pool;

void report(Arena &arena) {
  const Counts &counts = arena.counts;
  unsigned covered = 0;
  unsigned possible = 0;
  for (std::size_t kind = 0; kind < kinds().size(); ++kind) {
    if (kinds()[kind].between_sites && !arena.across) continue;
    for (const StreamKind stream : kStreamKinds) {
      ++possible;
      const bool met = counts.late[kind][static_cast<std::size_t>(stream)] != 0;
      covered += met ? 1 : 0;
      if (!met && !arena.verdict.failed())
        dprintf(1, "never freed behind: %s on %s\n", kinds()[kind].name, name_of(stream));
    }
  }
  dprintf(
      1,
      "rounds %llu, handed out again %llu, refused %llu, freed behind %llu of which %llu in flight, late reads %llu\n",
      counts.rounds.load(), static_cast<unsigned long long>(arena.handed_out.again()), counts.refused.load(),
      counts.left_behind.load(), counts.in_flight.load(), counts.late_reads.load());
  dprintf(1, "covered: %u of %u\n", covered, possible);
  if (arena.handed_out.again() == 0 || covered < possible || counts.in_flight * 2 < counts.left_behind) {
    arena.verdict.fail(kNothingTested);
  }
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return kOtherFailure;
  const unsigned long long rounds = strtoull(argv[1], nullptr, 10);
  const unsigned long long seed = strtoull(argv[2], nullptr, 10);
  const auto asked = [&](std::string_view word) { return std::find(argv + 3, argv + argc, word) != argv + argc; };
  dprintf(1, "seed %llu\n", seed);
  Arena arena;
  arena.across = asked("across");
  arena.async = asked("async");
  arena.sites = make_sites({asked("contexts"), asked("peer"), asked("green")}, arena.verdict);
  if (arena.sites.empty() || !arena.prepare()) return arena.verdict.status();
  arena.rounds_left = static_cast<long long>(rounds);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&arena, i, seed] { Worker(arena, i, seed).run(); });
  }
  for (std::thread &thread : threads) thread.join();
  report(arena);
  return arena.verdict.status();
}
