#include "pool/replay/log_trace.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "pool/granule.h"
#include "pool/replay/log_record.h"
#include "pool/replay/trace_file.h"

namespace ration::pool::replay {
namespace {

constexpr std::string_view kSchema = "ration.events/1";
constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kPoolsNamed = 16;  // in a message

// What was done to one pool, and how much of it at once.
struct Story {
  LogPool pool;
  std::size_t teller;  // index of its process
  struct Step {
    std::uint64_t name;
    std::uint64_t bytes;  // 0: a free
  };
  std::vector<Step> steps;
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

struct Flaws {
  std::uint64_t lost = 0;     // records that are known to be missing
  std::uint64_t damaged = 0;  // lines that are no record
  std::uint64_t first_damaged = 0;
  std::uint64_t overwritten = 0;  // blocks that another one took the place of
  std::uint64_t unknown_frees = 0;
  bool goes_back = false;
  bool cut_off = false;
};

struct Live {
  std::uint64_t end;  // address behind it
  std::uint64_t name;
  std::uint64_t bytes;
  std::size_t story;  // kNoStory: memory that is none of a pool's
};
constexpr std::size_t kNoStory = ~std::size_t{0};

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
    if (stories_.empty()) throw TraceError(path_ + ": no allocation in it");
    const Story *chosen = nullptr;
    for (const Story &story : stories_) {
      const auto matches = [](const std::optional<std::uint64_t> &wanted, std::uint64_t is) {
        return !wanted || *wanted == is;
      };
      if (!matches(selection.process, story.pool.process) || !matches(selection.device, story.pool.device) ||
          !matches(selection.context, story.pool.context)) {
        continue;
      }
      if (chosen == nullptr || story.peak_bytes > chosen->peak_bytes) chosen = &story;
    }
    if (chosen == nullptr) throw TraceError(path_ + ": none of its pools is that one: it has " + all_pools());
    TraceBuilder builder;
    for (const Story::Step &step : chosen->steps) {
      const char *wrong = step.bytes == 0 ? builder.free(step.name) : builder.allocate(step.name, step.bytes);
      if (wrong != nullptr)
        throw TraceError(path_ + ": the block of record " + std::to_string(step.name) + " " + wrong);
    }
    return {builder.take(), chosen->pool, stories_.size(), words(processes_[chosen->teller].flaws)};
  }

 private:
  struct Process {
    std::uint64_t number = 0;  // its pid
    std::uint64_t last_sequence = 0;
    Flaws flaws;
    std::map<std::uint64_t, Live> live;                                      // by address
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> stories;  // by device and context
  };

  // A log whose beginning is missing has no first record.
  Process &process() {
    if (processes_.empty()) processes_.emplace_back();
    return processes_.back();
  }

  // False where it is no record of a log.
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
    if (sequence <= process().last_sequence) {  // the beginning of another process's log, whose first line is missing
      processes_.emplace_back().flaws.goes_back = true;
    }
    process().flaws.lost += sequence - process().last_sequence - 1;
    process().last_sequence = sequence;
  }

  bool allocate(const LogRecord &record) {
    if (!record.address || !record.size || !record.requested || !record.device || !record.context) return false;
    // Rows of a pitched block are part of what the pool is asked for.
    const std::uint64_t bytes = record.api.starts_with("cuMemAllocPitch") ? *record.size : *record.requested;
    if (bytes == 0 || bytes > kMaximumBytes || *record.size > kMaximumBytes) return false;
    const std::uint64_t end = *record.address + std::max<std::uint64_t>(*record.size, 1);
    if (end < *record.address) return false;
    Process &teller = process();
    for (auto other = teller.live.lower_bound(end); other != teller.live.begin();) {
      --other;
      if (other->second.end <= *record.address) break;
      ++teller.flaws.overwritten;
      forget(other->second);
      other = teller.live.erase(other);
    }
    const std::size_t story = record.kind == "device" ? story_of(*record.device, *record.context) : kNoStory;
    teller.live[*record.address] = {end, *record.sequence, bytes, story};
    if (story == kNoStory) return true;
    Story &told = stories_[story];
    told.steps.push_back({*record.sequence, bytes});
    told.live_bytes += bytes;
    told.peak_bytes = std::max(told.peak_bytes, told.live_bytes);
    return true;
  }

  bool free(const LogRecord &record) {
    if (!record.address) return false;
    Process &teller = process();
    const auto block = teller.live.find(*record.address);
    if (block == teller.live.end()) {
      ++teller.flaws.unknown_frees;
      return true;
    }
    forget(block->second);
    teller.live.erase(block);
    return true;
  }

  void forget(const Live &block) {
    if (block.story == kNoStory) return;
    stories_[block.story].steps.push_back({block.name, 0});
    stories_[block.story].live_bytes -= block.bytes;
  }

  std::size_t story_of(std::uint64_t device, std::uint64_t context) {
    const auto [entry, is_new] = process().stories.emplace(std::pair(device, context), stories_.size());
    if (is_new) stories_.push_back({{process().number, device, context}, processes_.size() - 1, {}});
    return entry->second;
  }

  [[nodiscard]] std::string all_pools() const {
    std::string names;
    for (std::size_t index = 0; index < std::min(stories_.size(), kPoolsNamed); ++index) {
      const LogPool &pool = stories_[index].pool;
      names += (index == 0 ? "device " : ", device ") + std::to_string(pool.device) + " context " +
               std::to_string(pool.context) + " of process " + std::to_string(pool.process);
    }
    return stories_.size() > kPoolsNamed ? names + ", ..." : names;
  }

  static std::vector<std::string> words(const Flaws &flaws) {
    std::vector<std::string> words;
    const auto say = [&words](const std::string &what, std::uint64_t count, const std::string &then = "") {
      if (count != 0) words.push_back(what + ": " + std::to_string(count) + then);
    };
    say("missing records", flaws.lost);
    say("damaged lines, passed over", flaws.damaged, ", first line " + std::to_string(flaws.first_damaged));
    say("blocks that others take the place of without a free, freed there", flaws.overwritten);
    say("frees of blocks whose allocation is not in it, passed over", flaws.unknown_frees);
    if (flaws.goes_back) words.emplace_back("`seq` goes back: taken for another process without its first line");
    if (flaws.cut_off) words.emplace_back("the last line is cut off");
    return words;
  }

  const std::string &path_;
  std::vector<Process> processes_;
  std::vector<Story> stories_;
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
