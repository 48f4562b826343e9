// Cost of single steps of the core, and a reference from the same run: an uncontended lock and unlock of a std::mutex.
// Google Benchmark; run by scripts/bench.sh. Figures are ratios to the yardstick, not times.
#include <benchmark/benchmark.h>

#include <mutex>
#include <optional>

#include "events/json_lines.h"
#include "ledger/ledger.h"
#include "policy/calls/address_book.h"
#include "second_thread.h"

namespace {

using namespace ration;

void yardstick_mutex(benchmark::State &state) {
  std::mutex mutex;
  for (auto step : state) {
    mutex.lock();
    benchmark::ClobberMemory();
    mutex.unlock();
  }
}
BENCHMARK(yardstick_mutex);

void ledger_reserve_release(benchmark::State &state) {
  static ledger::Account account;
  account.set_limit(std::uint64_t{1} << 40);
  for (auto step : state) {
    benchmark::DoNotOptimize(account.reserve(1 << 20));
    account.release(1 << 20);
  }
}
BENCHMARK(ledger_reserve_release)->Threads(1)->Threads(2);

void address_book_pair(benchmark::State &state) {
  policy::AddressBook book;
  const policy::Block block{1 << 20, 0, std::make_shared<policy::Context>()};
  policy::Block found;
  std::optional<policy::Block> displaced;
  std::uint64_t address = std::uint64_t{1} << 40;
  for (auto step : state) {
    book.insert(address, block, displaced);
    benchmark::DoNotOptimize(book.begin_end(address, found));
    book.finish_end(address);
    address += 1 << 20;
  }
}
BENCHMARK(address_book_pair);

void format_alloc_line(benchmark::State &state) {
  const events::Alloc event{
      std::uint64_t{1} << 40, 1 << 20, 1 << 20, 0, 1, "cuMemAlloc_v2", events::Kind::device, events::Source::driver,
      events::Via::driver,    1234};
  for (auto step : state) {
    events::Line line;
    format(line, event, 4242);
    events::close_line(line, 123456789, 42);
    benchmark::DoNotOptimize(line.text.data());
  }
}
BENCHMARK(format_alloc_line);

}  // namespace

int main(int count, char **arguments) {
  const ration::bench::SecondThread second_thread;
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
