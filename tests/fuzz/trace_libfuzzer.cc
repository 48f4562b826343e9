// libFuzzer's entry: any bytes as a file for pool_replay give an error or a trace that can be replayed. run_corpus.cc
// calls it with files.
#include <cstdio>
#include <cstdlib>

#include "pool/unit.h"
#include "tests/bench/pool_replay/replay.h"

using namespace ration::pool;

namespace {

// Checks the guarantees of every reader for its trace. The error, or null.
const char *wrong_with(const replay::Trace &trace) {
  std::vector<std::uint64_t> live(trace.ids);
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
  for (const replay::Operation &operation : trace.operations) {
    if (operation.id >= trace.ids) return "has an id beyond its ids";
    if (operation.is_free != (live[operation.id] != 0)) return "frees what is not live, or has it twice";
    if (!operation.is_free && (operation.bytes == 0 || operation.bytes > kMaximumBytes)) return "has an odd size";
    bytes += operation.is_free ? -live[operation.id] : operation.bytes;
    live[operation.id] = operation.is_free ? 0 : operation.bytes;
    peak = std::max(peak, bytes);
  }
  if (peak != trace.peak_bytes || peak == 0 || peak > kMaximumBytes) return "has another peak";
  return trace.names.size() == trace.ids ? nullptr : "has not a name for each block";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *bytes, std::size_t size) {
  const std::string content(reinterpret_cast<const char *>(bytes), size);
  try {
    const replay::Trace trace = replay::parse_trace("input", content);
    if (const char *wrong = wrong_with(trace)) {
      std::fprintf(stderr, "the trace %s\n", wrong);
      std::abort();
    }
    (void)replay::replay(trace, 2 * trace.peak_bytes);
  } catch (const replay::TraceError &) {
  }
  return 0;
}
