#include "events/json_lines.h"

#include <charconv>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "base/asked_names.h"

namespace ration::events {
namespace {

std::string_view name_of(Via via) {
  return via == Via::runtime ? "runtime" : "driver";
}

template <class... Values>
void add(Line &line, fmt::format_string<Values...> format, Values &&...values) {
  fmt::format_to(std::back_inserter(line.text), format, std::forward<Values>(values)...);
}

// Formats the records of which a program may write millions. Space is reserved once, and each piece is copied or
// converted in place. fmt would take some 1,500 instructions for such a line, even with a compiled format.
class Pieces {
 public:
  // `bytes`: the most bytes that will be added.
  Pieces(Line &line, std::size_t bytes) : line_(line) {
    line.text.reserve(line.text.size() + bytes);
    at_ = line.text.data() + line.text.size();
  }
  ~Pieces() { line_.text.resize(static_cast<std::size_t>(at_ - line_.text.data())); }
  Pieces(const Pieces &) = delete;
  Pieces &operator=(const Pieces &) = delete;

  template <std::size_t kSize>
  Pieces &operator<<(const char (&text)[kSize]) {
    std::memcpy(at_, text, kSize - 1);
    at_ += kSize - 1;
    return *this;
  }
  Pieces &operator<<(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  template <class Number>
  requires std::is_integral_v<Number> Pieces &operator<<(Number number) {
    if constexpr (std::is_signed_v<Number>) {
      if (number < 0) [[unlikely]] {
        *at_++ = '-';
        return *this << -static_cast<std::uint64_t>(number);
      }
    }
    decimal(static_cast<std::uint64_t>(number));
    return *this;
  }
  Pieces &hexadecimal(std::uint64_t number) {
    at_ = std::to_chars(at_, at_ + kLongestNumber, number, 16).ptr;
    return *this;
  }

  static constexpr std::size_t kLongestNumber = 16;  // in hexadecimal

 private:
  static constexpr std::uint64_t kEight = 100'000'000;

  // Writes eight digits at a time, without a load that waits for an earlier store, in half the time of std::to_chars.
  // May write up to eight characters past the number, which later pieces overwrite.
  void decimal(std::uint64_t number) {
    if (number < kEight) {
      first_digits(number);
    } else if (const std::uint64_t before = number / kEight; before < kEight) {
      first_digits(before);
      more_digits(number % kEight);
    } else {
      first_digits(before / kEight);
      more_digits(before % kEight);
      more_digits(number % kEight);
    }
  }
  void first_digits(std::uint64_t number) {
    const std::uint64_t digits = digits_of(number);
    const int zeros = __builtin_ctzll(digits | 1ULL << 63U) / 8;  // at most seven
    put((digits | kZeros) >> static_cast<unsigned>(8 * zeros), 8 - zeros);
  }
  void more_digits(std::uint64_t number) { put(digits_of(number) | kZeros, 8); }
  void put(std::uint64_t characters, int count) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    std::memcpy(at_, &characters, sizeof(characters));
    at_ += count;
  }
  // The eight digits of a number below kEight, one in each byte, the first digit in the lowest byte. Splits the number
  // into two halves, these into four pairs, these into eight digits. Each step divides all its parts with one
  // multiplication, which is exact for numbers of so many digits.
  static std::uint64_t digits_of(std::uint64_t number) {
    const std::uint64_t halves = number / 10'000 | number % 10'000 << 32U;
    const std::uint64_t hundreds = halves * 10'486 >> 20U & 0x0000'007f'0000'007fU;
    const std::uint64_t pairs = hundreds | (halves - 100 * hundreds) << 16U;
    const std::uint64_t tens = pairs * 103 >> 10U & 0x000f'000f'000f'000fU;
    return tens | (pairs - 10 * tens) << 8U;
  }
  static constexpr std::uint64_t kZeros = 0x3030'3030'3030'3030U;

  Line &line_;
  char *at_;
};
constexpr std::size_t kMostOfARecord = 400;  // bytes of the keys, the numbers and the short names; without `api`
constexpr std::size_t kMostOfAnEnd = 80;     // bytes that close a record: one or two keys with their numbers

std::uint64_t load(const std::atomic<std::uint64_t> &value) {
  return value.load(std::memory_order_relaxed);
}

template <class Number>
std::uint64_t load(const Number &value) {
  return __atomic_load_n(&value, __ATOMIC_RELAXED);
}

}  // namespace

void format(Line &line, const Alloc &event, int thread) {
  const std::string_view api(event.api);
  Pieces pieces(line, kMostOfARecord + api.size());
  pieces << R"({"t":"alloc","tid":)" << thread << R"(,"dev":)" << event.device << R"(,"ctx":)" << event.context
         << R"(,"stream":)" << event.stream << R"(,"api":")" << api << R"(","via":")" << name_of(event.via)
         << R"(","kind":")" << name_of(event.kind) << R"(","addr":"0x)";
  pieces.hexadecimal(event.address) << R"(","size":)" << event.size << R"(,"req":)" << event.requested << R"(,"src":")"
                                    << name_of(event.source) << "\"";
  if (event.slab != 0) {
    pieces << R"(,"slab":)" << event.slab;
  }
  if (!event.charged) {
    pieces << R"(,"charged":false)";
  }
  if (event.stitched) {
    pieces << R"(,"stitched":true)";
  }
  pieces << R"(,"dur":)" << event.duration_ns;
}

void format(Line &line, const Free &event, int thread) {
  const std::string_view api(event.api);
  Pieces pieces(line, kMostOfARecord + api.size());
  pieces << R"({"t":"free","tid":)" << thread << R"(,"dev":)" << event.device << R"(,"ctx":)" << event.context
         << R"(,"stream":)" << event.stream << R"(,"api":")" << api << R"(","kind":")" << name_of(event.kind)
         << R"(","addr":"0x)";
  pieces.hexadecimal(event.address) << R"(","size":)" << event.size << R"(,"src":")" << name_of(event.source) << "\"";
  if (!event.charged) {
    pieces << R"(,"charged":false)";
  }
}

void format(Line &line, const Oom &event, int thread) {
  add(line,
      R"({{"t":"oom","tid":{},"dev":{},"api":"{}","req":{},"reason":"{}","used":{},"limit":{},"device_free":{},)"
      R"("largest_free":{},"reserved":{},"quarantined":{},"capturing":{})",
      thread, event.device, event.api, event.requested, name_of(event.reason), event.used, event.limit,
      event.device_free ? std::to_string(*event.device_free) : "null", event.largest_free, event.reserved,
      event.quarantined, event.capturing);
  if (const std::uint64_t lacking = event.lacking(); lacking != 0) {
    add(line, R"(,"lacking":{})", lacking);
  }
  if (!event.group.name.empty()) {
    add(line, R"(,"group":"{}","group_limit":{},"group_reserved":{},"group_claimed":{})", event.group.name,
        event.group.limit, event.group.reserved, event.group.claimed);
  } else if (event.holders.empty()) {
    return;
  }
  nlohmann::ordered_json holders = nlohmann::ordered_json::array();
  for (const Holder &holder : event.holders) {
    holders.push_back(
        {{"pid", holder.pid}, {"exe", holder.program}, {"reserved", holder.reserved}, {"used", holder.used}});
    if (holder.guarantee != 0) {
      holders.back()["guarantee"] = holder.guarantee;
    }
  }
  add(line, R"(,"holders":{})", holders.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (event.more_holders != 0) {
    add(line, R"(,"more_holders":{})", event.more_holders);
  }
}

void format(Line &line, const SlabAlloc &event, int thread) {
  add(line,
      R"({{"t":"slab_alloc","tid":{},"dev":{},"ctx":{},"slab":{},"addr":"{:#x}","size":{},"backend":"{}","why":"{}",)"
      R"("dur":{})",
      thread, event.device, event.context, event.slab, event.address, event.size, event.backend, event.why,
      event.duration_ns);
  if (event.range != 0) {
    add(line, R"(,"range":{})", event.range);
  }
}

void format(Line &line, const SlabFree &event, int thread) {
  add(line,
      R"({{"t":"slab_free","tid":{},"dev":{},"ctx":{},"slab":{},"addr":"{:#x}","size":{},"backend":"{}","api":"{}")",
      thread, event.device, event.context, event.slab, event.address, event.size,
      event.granule     ? "cuMemCreate"
      : event.size == 0 ? "cuMemAddressReserve"
                        : "cuMemAlloc_v2",
      event.api);
}

void format(Line &line, const Wait &event, int thread) {
  add(line, R"({{"t":"wait","tid":{},"dev":{},"api":"{}","how":"{}","blocks":{},"bytes":{},"result":{},"dur":{})",
      thread, event.device, event.api, event.how, event.blocks, event.bytes, event.result, event.duration_ns);
}

void format(Line &line, const Sample &event, int thread) {
  add(line, R"({{"t":"sample","tid":{},"dev":{},"api":"{}","pool_reserved":{})", thread, event.device, event.api,
      event.pool_reserved);
}

void format(Line &line, const Trim &event, int thread) {
  add(line, R"({{"t":"trim","tid":{},"dev":{},"api":"{}","slabs":{},"granules":{},"bytes":{})", thread, event.device,
      event.api, event.slabs, event.granules, event.bytes);
}

void format_stack(Line &line, std::uint32_t number) {
  Pieces(line, kMostOfAnEnd) << R"(,"stack":)" << number;
}

void format_dropped(Line &line, std::uint64_t count) {
  add(line, R"({{"t":"dropped","count":{})", count);
}

std::uint64_t count_in_dropped(std::string_view line) {
  constexpr std::string_view kBegins = R"({"t":"dropped","count":)";
  std::uint64_t count = 0;
  if (line.substr(0, kBegins.size()) == kBegins) {
    std::from_chars(line.data() + kBegins.size(), line.data() + line.size(), count);
  }
  return count;
}

// A line that stays within one page of the file is written completely or not at all (README.md, Lines).
constexpr std::size_t kEndAtMost = 4000;  // bytes of the `end` record, without `dropped`, `ts` and `seq`
constexpr std::size_t kForNewer = 700;    // the part of these bytes for `newer`

// Adds the names that were kept, first those of functions that may take memory, until the line would exceed `at_most`.
void add_names(Line &line, const char *key, const RationNames *names, std::size_t at_most) {
  add(line, R"("{}":[)", key);
  const char *comma = "";
  for (const bool of_memory : {true, false}) {
    for (unsigned place = 0; names != nullptr && place < RATION_NAMES_KEPT; ++place) {
      const char *name = name_at(*names, place);
      if (name != nullptr && may_take_memory(name) == of_memory && line.text.size() + std::strlen(name) < at_most) {
        add(line, R"({}"{}")", comma, name);
        comma = ",";
      }
    }
  }
  add(line, "],");
}

void format_end(Line &line, const SummaryPage &tally, std::uint64_t dropped, const RationCoverage *asked) {
  const auto devices = static_cast<int>(tally.device_count.load(std::memory_order_relaxed));
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;
  std::uint64_t denied = 0;
  std::uint64_t waits = 0;
  std::string peaks;
  std::string reserved_peaks;
  std::string live;
  std::string granules;
  std::string stitched;
  std::string overhead;
  for (int i = 0; i < devices; ++i) {
    const DeviceTally &device = tally.devices[i];
    allocs += load(device.allocs);
    frees += load(device.frees);
    for (const auto &count : device.denied) {
      denied += load(count);
    }
    waits += load(device.waits);
    const char *comma = i > 0 ? "," : "";
    peaks += fmt::format("{}{}", comma, load(device.peak_bytes));
    reserved_peaks += fmt::format("{}{}", comma, load(device.reserved_peak_bytes));
    live += fmt::format(R"({}{{"dev":{},"count":{},"bytes":{}}})", comma, i, load(device.allocs) - load(device.frees),
                        load(device.live_bytes));
    granules += fmt::format("{}{}", comma, load(device.granules_peak));
    stitched += fmt::format("{}{}", comma, load(device.stitched));
    overhead += fmt::format(R"({}{{"dev":{},"bytes":{})", comma, i, load(device.overhead_peak));
    for (int kind = 0; kind < kOverheadKinds; ++kind) {
      overhead += fmt::format(R"(,"{}":{})", kOverheadNames[kind], load(device.overhead[kind]));
    }
    overhead += fmt::format(R"(,"unmeasured":{}}})", device.overhead_unmeasured.load(std::memory_order_relaxed));
  }
  add(line,
      R"({{"t":"end","status":"exit","peak":[{}],"reserved_peak":[{}],"live":[{}],"granules_peak":[{}],"stitched":[{}],)"
      R"("overhead":[{}],)"
      R"("allocs":{},"frees":{},"ooms":{},"refused_ipc":{},"waits":{},"failed_allocs":{},"failed_frees":{},)"
      R"("null_frees":{},)",
      peaks, reserved_peaks, live, granules, stitched, overhead, allocs, frees, denied, load(tally.refused_shares),
      waits, load(tally.failed_allocs), load(tally.failed_frees), load(tally.null_frees));
  add(line, R"("unknown_names":{},)", asked != nullptr ? load(asked->unknown_names.count) : 0);
  add_names(line, "unknown", asked != nullptr ? &asked->unknown_names : nullptr, kEndAtMost - kForNewer);
  add(line, R"("unknown_versions":{},)", asked != nullptr ? load(asked->unknown_versions) : 0);
  add_names(line, "newer", asked != nullptr ? &asked->newer : nullptr, kEndAtMost);
  add(line, R"("dropped":{})", dropped);
}

void close_line(Line &line, std::uint64_t ts_ns, std::uint64_t seq) {
  Pieces(line, kMostOfAnEnd) << R"(,"ts":)" << ts_ns << R"(,"seq":)" << seq << "}\n";
}

std::string meta_line(const Meta &meta, const Process &process) {
  // The order matters: log_file.cc looks for `tree` near the start of the line, and argv may be megabytes.
  using json = nlohmann::ordered_json;
  json devices = json::array();
  for (const DeviceFacts &device : meta.devices) {
    devices.push_back({{"dev", device.ordinal},
                       {"uuid", device.uuid},
                       {"name", device.name},
                       {"total", device.total},
                       {"limit", device.limit},
                       {"limit_asked", device.limit_asked}});
    if (device.group_limit != 0) {
      devices.back()["group_limit"] = device.group_limit;
    }
    if (!device.mode.empty()) {
      devices.back()["mode"] = device.mode;
    }
    if (!device.backing.empty()) {
      devices.back()["backing"] = device.backing;
      devices.back()["backing_reason"] = device.backing_reason;
    }
  }
  json settings = json::object();
  for (const Meta::Setting &setting : meta.settings) {
    json said = {{"value", setting.value}, {"source", setting.source}};
    if (!setting.place.empty()) {
      said["place"] = setting.place;
    }
    if (setting.locked) {
      said["locked"] = true;
    }
    if (settings.contains(setting.key)) {
      settings[setting.key]["beside"].push_back(std::move(said));  // a ceiling, or another limit in effect
    } else {
      settings[setting.key] = std::move(said);
    }
  }
  json environment = json::object();
  for (const auto &[name, value] : meta.environment) {
    environment[name] = value;
  }
  json foreign = json::array();
  for (const Meta::ThirdPartyVariable &one : meta.foreign) {
    foreign.push_back(
        {{"variable", one.variable}, {"value", one.value}, {"standing", one.disposition}, {"reason", one.reason}});
  }
  const json line = {{"t", "meta"},
                     {"schema", kSchema},
                     {"ver", RATION_VERSION},
                     {"pid", process.pid},
                     {"ppid", process.parent},
                     {"host", process.host},
                     {"exe", process.executable},
                     {"tree", process.tree},
                     {"start_unix_ns", process.start_unix_ns},
                     {"clock", "monotonic"},
                     {"driver", meta.driver_version},
                     {"mode", meta.mode},
                     {"devices", std::move(devices)},
                     {"settings", std::move(settings)},
                     {"foreign", std::move(foreign)},
                     {"env", std::move(environment)},
                     {"argv", process.arguments}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ration::events
