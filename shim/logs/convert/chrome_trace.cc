// The JSON trace format of Chrome, which ui.perfetto.dev opens: counters for each device, a bar for the life of each
// block, and a mark for each refusal. Times are in microseconds.
#include <cstdio>
#include <set>
#include <unordered_map>

#include "logs/convert/converter.h"
#include "logs/history/history.h"

namespace ration::logs {
namespace {

using TraceJson = nlohmann::ordered_json;

constexpr std::uint64_t kNsOfMicrosecond = 1000;

class ChromeTrace : public Converter {
 public:
  explicit ChromeTrace(std::ostream &out) : out_(out) {}

  void add(const Record &record) override {
    history_.add(record);
    switch (record.type) {
      case Record::Type::meta:
        out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
        pid_ = record.number("pid");
        name("process_name", pid_, std::string(record.text("exe")));
        return;
      case Record::Type::alloc:
      case Record::Type::free:
        if (const LiveBlock *ended = history_.blocks().ended(); ended != nullptr) {
          end_block(*ended, record);
        }
        if (const LiveBlock *begun = history_.blocks().begun(); begun != nullptr) {
          begin_block(*begun, record);
        }
        break;
      case Record::Type::oom:
        refusal(record);
        break;
      case Record::Type::dropped:
        mark(record, "records lost", {{"count", record.number("count")}});
        return;
      default:
        break;
    }
    count(record);
  }

  void finish() override {
    history_.finish();
    out_ << "\n]}\n";
  }

 private:
  struct Counted {
    std::uint64_t used = 0, reserved = 0;
    bool is_written = false;
  };

  // Writes an event; adds the process and, if `at` is not null, the time of that record.
  void write(TraceJson event, const Record *at) {
    event["pid"] = pid_;
    std::string line = event.dump(-1, ' ', false, TraceJson::error_handler_t::replace);
    if (at != nullptr) {  // written as text: a double would not keep all digits of the number
      const std::uint64_t ns = at->number("ts");
      char time[40];
      std::snprintf(time, sizeof(time), ",\"ts\":%llu.%03u}", static_cast<unsigned long long>(ns / kNsOfMicrosecond),
                    static_cast<unsigned>(ns % kNsOfMicrosecond));
      line.pop_back();
      line += time;
    }
    out_ << (is_first_ ? "\n" : ",\n") << line;
    is_first_ = false;
  }

  void name(const char *what, std::uint64_t thread, const std::string &text) {
    write({{"ph", "M"}, {"name", what}, {"tid", thread}, {"args", {{"name", text}}}}, nullptr);
  }

  std::uint64_t thread_of(const Record &record) {
    const std::uint64_t thread = record.number("tid");
    if (threads_.insert(thread).second) {
      name("thread_name", thread, thread == pid_ ? "main thread" : "thread " + std::to_string(thread));
    }
    return thread;
  }

  void mark(const Record &record, const std::string &text, TraceJson arguments) {
    const std::uint64_t thread = record.number("tid") != 0 ? thread_of(record) : pid_;
    write({{"ph", "i"}, {"s", "p"}, {"cat", "ration"}, {"name", text}, {"tid", thread}, {"args", std::move(arguments)}},
          &record);
  }

  const std::string &caller_of(std::uint64_t stack) {
    const auto [found, is_new] = callers_.try_emplace(stack);
    if (is_new) {
      found->second = history_.stacks().caller(stack);
    }
    return found->second;
  }

  void refusal(const Record &record) {
    TraceJson arguments = {{"dev", record.device()}};
    for (const char *key : {"api", "req", "reason", "used", "limit", "device_free", "largest_free", "reserved"}) {
      if (record.has(key)) {
        arguments[key] = record.value(key);
      }
    }
    arguments["caller"] = caller_of(record.number("stack"));
    std::string text = "refused: ";
    text += record.text("reason");
    mark(record, text, std::move(arguments));
  }

  // `record`: that of the block's beginning or end.
  static std::string id_of(const LiveBlock &block, const Record &record) {
    return std::string(record.text("addr")) + "#" + std::to_string(block.seq);
  }

  void begin_block(const LiveBlock &block, const Record &record) {
    const std::uint64_t thread = thread_of(record);
    const std::string &caller = caller_of(block.stack);
    const std::string &api = history_.blocks().api_of(block);
    write({{"ph", "b"},
           {"cat", "block"},
           {"name", caller.empty() ? api : caller},
           {"id", id_of(block, record)},
           {"tid", thread},
           {"args",
            {{"dev", block.device},
             {"size", block.bytes},
             {"req", block.requested},
             {"api", api},
             {"kind", history_.blocks().kind_of(block)},
             {"charged", block.is_charged},
             {"stream", block.stream},
             {"caller", caller}}}},
          &record);
  }

  // Ends the bar of a block. The bar of a block that was never freed has no end.
  void end_block(const LiveBlock &block, const Record &record) {
    const std::string &caller = caller_of(block.stack);
    write({{"ph", "e"},
           {"cat", "block"},
           {"name", caller.empty() ? history_.blocks().api_of(block) : caller},
           {"id", id_of(block, record)},
           {"tid", thread_of(record)}},
          &record);
  }

  void count(const Record &record) {
    const std::size_t ordinal = record.device();
    if (!record.has("dev") || ordinal >= history_.devices().size()) {
      return;
    }
    const History::Device &device = history_.devices()[ordinal];
    Counted &before = counted_[ordinal];
    if (before.is_written && before.used == device.live_bytes && before.reserved == device.reserved_bytes) {
      return;
    }
    before = {device.live_bytes, device.reserved_bytes, true};
    write({{"ph", "C"},
           {"name", "device " + std::to_string(ordinal)},
           {"args", {{"used", device.live_bytes}, {"reserved", device.reserved_bytes}, {"limit", device.limit}}}},
          &record);
  }

  std::ostream &out_;
  History history_{History::By::call};
  std::unordered_map<std::uint64_t, std::string> callers_;
  std::unordered_map<std::size_t, Counted> counted_;
  std::set<std::uint64_t> threads_;
  std::uint64_t pid_ = 0;
  bool is_first_ = true;
};

}  // namespace

std::unique_ptr<Converter> chrome_trace(std::ostream &out) {
  return std::make_unique<ChromeTrace>(out);
}

}  // namespace ration::logs
