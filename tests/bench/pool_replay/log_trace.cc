#include "tests/bench/pool_replay/log_trace.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "pool/unit.h"
#include "tests/bench/pool_replay/log_record.h"
#include "tests/bench/pool_replay/trace_file.h"

namespace ration::pool::replay {
namespace {

constexpr std::string_view kSchema = "ration.events/1";
constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kPoolsNamed = 16;  // in a message

// The operations of one pool, and its peak.
struct PoolHistory {
  LogPool pool;
  std::size_t process;  // index
  struct Step {
    std::uint64_t name;
    std::uint64_t bytes;  // 0: a free
  };
  std::vector<Step> steps;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

struct Flaws {
  std::uint64_t lost = 0;     // missing records
  std::uint64_t damaged = 0;  // lines that are not records
  std::uint64_t first_damaged = 0;
  std::uint64_t overwritten = 0;  // blocks that a new one overlapped
  std::uint64_t unknown_frees = 0;
  bool goes_back = false;
  bool cut_off = false;
};

struct Live {
  std::uint64_t end;  // first address after it
  std::uint64_t name;
  std::uint64_t bytes;
  std::size_t pool;  // kNoPool: memory that no pool serves
};
constexpr std::size_t kNoPool = ~std::size_t{0};

class LogReader {
 public:
  explicit LogReader(const std::string &path) : path_(path) {}

  void read(std::string_view text) {
    for (std::uint64_t number = 1; !text.empty(); ++number) {
      const bool ends = text.find('\n') != std::string_view::npos;
      std::string_view line = take_line(text);
      line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
      if (line.empty()) continue;
      const std::optional<LogRecord> record = parse_record(line);
      if (record && take(*record, number)) continue;
      Flaws &flaws = process().flaws;
      if (!ends) {
        flaws.cut_off = true;
      } else if (flaws.damaged++ == 0) {
        flaws.first_damaged = number;
      }
    }
  }

  LogTrace result(const LogSelection &selection) {
    if (histories_.empty()) throw TraceError(path_ + ": no allocation in it");
    const PoolHistory *chosen = nullptr;
    for (const PoolHistory &history : histories_) {
      const auto matches = [](const std::optional<std::uint64_t> &wanted, std::uint64_t is) {
        return !wanted || *wanted == is;
      };
      if (!matches(selection.process, history.pool.process) || !matches(selection.device, history.pool.device) ||
          !matches(selection.context, history.pool.context)) {
        continue;
      }
      if (chosen == nullptr || history.peak_bytes > chosen->peak_bytes) chosen = &history;
    }
    if (chosen == nullptr) throw TraceError(path_ + ": it has no such pool, only " + all_pools());
    TraceBuilder builder;
    for (const PoolHistory::Step &step : chosen->steps) {
      const char *wrong = step.bytes == 0 ? builder.free(step.name) : builder.allocate(step.name, step.bytes);
      if (wrong != nullptr)
        throw TraceError(path_ + ": the block of record " + std::to_string(step.name) + " " + wrong);
    }
    return {builder.take(), chosen->pool, histories_.size(), describe(processes_[chosen->process].flaws)};
  }

 private:
  struct Process {
    std::uint64_t number = 0;  // its pid
    std::uint64_t last_sequence = 0;
    Flaws flaws;
    std::map<std::uint64_t, Live> live;                                    // by address
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> pools;  // by device and context
  };

  // A truncated log may lack its `meta` record.
  Process &process() {
    if (processes_.empty()) processes_.emplace_back();
    return processes_.back();
  }

  // False where the record is invalid.
  bool take(const LogRecord &record, std::uint64_t line) {
    if (record.type == "meta") return begin_process(record, line);
    if (record.type.empty() || !record.sequence) return false;
    follow_sequence(*record.sequence);
    if (record.type == "dropped") {
      process().flaws.lost += record.count.value_or(1);
      return record.count.has_value();
    }
    if (record.type == "alloc") return allocate(record);
    if (record.type == "free") return free(record);
    return true;
  }

  bool begin_process(const LogRecord &record, std::uint64_t line) {
    if (record.schema != kSchema) {
      throw TraceError(path_ + ":" + std::to_string(line) + ": the schema `" + record.schema.substr(0, 40) +
                       "` is not " + std::string(kSchema));
    }
    processes_.emplace_back().number = record.process.value_or(0);
    return true;
  }

  void follow_sequence(std::uint64_t sequence) {
    if (sequence <= process().last_sequence) {  // another process's log without its first line
      processes_.emplace_back().flaws.goes_back = true;
    }
    process().flaws.lost += sequence - process().last_sequence - 1;
    process().last_sequence = sequence;
  }

  // Of these `addr` is a handle, which may be any number; no pool serves them.
  static bool has_handle(const LogRecord &record) { return record.kind == "array" || record.kind == "vmm"; }

  bool allocate(const LogRecord &record) {
    if (!record.address || !record.size || !record.requested || !record.device || !record.context) return false;
    if (has_handle(record)) return true;
    // A pitched request includes its rows' padding.
    const std::uint64_t bytes = record.api.starts_with("cuMemAllocPitch") ? *record.size : *record.requested;
    if (bytes == 0 || bytes > kMaximumBytes || *record.size > kMaximumBytes) return false;
    const std::uint64_t end = *record.address + std::max<std::uint64_t>(*record.size, 1);
    if (end < *record.address) return false;
    Process &owner = process();
    for (auto other = owner.live.lower_bound(end); other != owner.live.begin();) {
      --other;
      if (other->second.end <= *record.address) break;
      ++owner.flaws.overwritten;
      forget(other->second);
      other = owner.live.erase(other);
    }
    const std::size_t pool = record.kind == "device" ? pool_of(*record.device, *record.context) : kNoPool;
    owner.live[*record.address] = {end, *record.sequence, bytes, pool};
    if (pool == kNoPool) return true;
    PoolHistory &history = histories_[pool];
    history.steps.push_back({*record.sequence, bytes});
    history.live_bytes += bytes;
    history.peak_bytes = std::max(history.peak_bytes, history.live_bytes);
    return true;
  }

  bool free(const LogRecord &record) {
    if (!record.address) return false;
    if (has_handle(record)) return true;
    Process &owner = process();
    const auto block = owner.live.find(*record.address);
    if (block == owner.live.end()) {
      ++owner.flaws.unknown_frees;
      return true;
    }
    forget(block->second);
    owner.live.erase(block);
    return true;
  }

  void forget(const Live &block) {
    if (block.pool == kNoPool) return;
    histories_[block.pool].steps.push_back({block.name, 0});
    histories_[block.pool].live_bytes -= block.bytes;
  }

  std::size_t pool_of(std::uint64_t device, std::uint64_t context) {
    const auto [entry, is_new] = process().pools.emplace(std::pair(device, context), histories_.size());
    if (is_new) histories_.push_back({{process().number, device, context}, processes_.size() - 1, {}});
    return entry->second;
  }

  [[nodiscard]] std::string all_pools() const {
    std::string names;
    for (std::size_t index = 0; index < std::min(histories_.size(), kPoolsNamed); ++index) {
      const LogPool &pool = histories_[index].pool;
      names += (index == 0 ? "device " : ", device ") + std::to_string(pool.device) + " context " +
               std::to_string(pool.context) + " of process " + std::to_string(pool.process);
    }
    return histories_.size() > kPoolsNamed ? names + ", ..." : names;
  }

  static std::vector<std::string> describe(const Flaws &flaws) {
    std::vector<std::string> words;
    const auto report = [&words](const std::string &what, std::uint64_t count, const std::string &then = "") {
      if (count != 0) words.push_back(what + ": " + std::to_string(count) + then);
    };
    report("missing records", flaws.lost);
    report("damaged lines, skipped", flaws.damaged, ", first line " + std::to_string(flaws.first_damaged));
    report("blocks that a new one overlaps without a free, freed there", flaws.overwritten);
    report("frees of blocks without an allocation, skipped", flaws.unknown_frees);
    if (flaws.goes_back) words.emplace_back("`seq` goes back: assumed to be another process without its first line");
    if (flaws.cut_off) words.emplace_back("the last line is truncated");
    return words;
  }

  const std::string &path_;
  std::vector<Process> processes_;
  std::vector<PoolHistory> histories_;
};

}  // namespace

bool is_log(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

LogTrace parse_log(const std::string &path, std::string_view text, const LogSelection &selection) {
  LogReader reader(path);
  reader.read(text);
  return reader.result(selection);
}

}  // namespace ration::pool::replay
