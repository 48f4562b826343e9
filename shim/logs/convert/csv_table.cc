// One row for each record about memory, for spreadsheets and data frames. Quotes fields as RFC 4180 says.
#include <array>
#include <unordered_map>

#include "logs/convert/converter.h"
#include "logs/stacks/stack_table.h"

namespace ration::logs {
namespace {

// Keys of records (events/README.md), one column each. kLastColumns follow them.
constexpr std::array<const char *, 42> kCsvKeys = {
    "t",        "seq",           "ts",        "tid",   "dev",         "ctx",           "stream",
    "api",      "via",           "kind",      "addr",  "size",        "req",           "src",
    "slab",     "charged",       "stitched",  "dur",   "stack",       "backend",       "why",
    "range",    "how",           "blocks",    "bytes", "result",      "slabs",         "granules",
    "count",    "pool_reserved", "reason",    "used",  "limit",       "device_free",   "largest_free",
    "reserved", "quarantined",   "capturing", "group", "group_limit", "group_claimed", "group_reserved"};
constexpr const char *kLastColumns = ",lacking,holders,caller\n";

std::string csv_cell(const std::string &text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char each : text) {
    quoted.append(each == '"' ? 2 : 1, each);
  }
  return quoted += '"';
}

std::string csv_cell(const nlohmann::json &value) {
  return csv_cell(value.is_string() ? value.get<std::string>()
                                    : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

class CsvTable : public Converter {
 public:
  explicit CsvTable(std::ostream &out) : out_(out) {}

  void add(const Record &record) override {
    switch (record.type) {
      case Record::Type::meta:
        write_titles();
        [[fallthrough]];
      case Record::Type::mod:
      case Record::Type::frame:
      case Record::Type::stack:
      case Record::Type::names:
        stacks_.add(record);
        return;
      case Record::Type::end:
      case Record::Type::other:
        return;
      default:
        break;
    }
    const char *separator = "";
    for (const char *key : kCsvKeys) {
      out_ << separator;
      if (const nlohmann::json value = record.value(key); !value.is_null()) {
        out_ << csv_cell(value);
      }
      separator = ",";
    }
    for (const char *key : {"lacking", "holders"}) {
      out_ << ',';
      if (record.has(key)) {
        out_ << csv_cell(record.value(key));
      }
    }
    out_ << ',' << csv_cell(caller_of(record.number("stack"))) << '\n';
  }
  void finish() override {}

 private:
  void write_titles() {
    const char *separator = "";
    for (const char *key : kCsvKeys) {
      out_ << separator << key;
      separator = ",";
    }
    out_ << kLastColumns;
  }

  const std::string &caller_of(std::uint64_t stack) {
    const auto [found, is_new] = callers_.try_emplace(stack);
    if (is_new) {
      found->second = stacks_.caller(stack);
    }
    return found->second;
  }

  std::ostream &out_;
  StackTable stacks_;
  std::unordered_map<std::uint64_t, std::string> callers_;
};

}  // namespace

std::unique_ptr<Converter> csv_table(std::ostream &out) {
  return std::make_unique<CsvTable>(out);
}

}  // namespace ration::logs
