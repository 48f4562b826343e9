#include "tests/bench/pool_replay/log_record.h"

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

namespace ration::pool::replay {
namespace {

std::optional<std::uint64_t> address_in(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t address = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), address, 16);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(address) : std::nullopt;
}

// SAX: a tree of each line would cost several times the rest of the replay.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  LogRecord record;
  bool is_object = false;

  bool null() override { return end_value(); }
  bool boolean(bool) override { return end_value(); }
  bool number_integer(number_integer_t) override { return end_value(); }
  bool number_float(number_float_t, const string_t &) override { return end_value(); }
  bool binary(binary_t &) override { return end_value(); }
  bool number_unsigned(number_unsigned_t value) override {
    if (number_ != nullptr && number_ != &LogRecord::address) record.*number_ = value;
    return end_value();
  }
  bool string(string_t &value) override {
    if (number_ == &LogRecord::address) record.address = address_in(value);
    if (text_ != nullptr) record.*text_ = std::move(value);
    return end_value();
  }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object = true;
    return start_nested();
  }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override { return start_nested(); }
  bool end_array() override { return --depth_, true; }
  bool key(string_t &name) override {
    if (depth_ != 1) return true;
    for (const auto &[wanted, member] : kTexts) {
      if (name == wanted) text_ = member;
    }
    for (const auto &[wanted, member] : kNumbers) {
      if (name == wanted) number_ = member;
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string &, const nlohmann::detail::exception &) override { return false; }

 private:
  using Text = std::string LogRecord::*;
  using Number = std::optional<std::uint64_t> LogRecord::*;
  static constexpr std::array<std::pair<std::string_view, Text>, 4> kTexts = {
      {{"t", &LogRecord::type}, {"schema", &LogRecord::schema}, {"api", &LogRecord::api}, {"kind", &LogRecord::kind}}};
  static constexpr std::array<std::pair<std::string_view, Number>, 8> kNumbers = {{{"addr", &LogRecord::address},
                                                                                   {"size", &LogRecord::size},
                                                                                   {"req", &LogRecord::requested},
                                                                                   {"dev", &LogRecord::device},
                                                                                   {"ctx", &LogRecord::context},
                                                                                   {"seq", &LogRecord::sequence},
                                                                                   {"count", &LogRecord::count},
                                                                                   {"pid", &LogRecord::process}}};

  bool end_value() {
    text_ = nullptr;
    number_ = nullptr;
    return true;
  }
  bool start_nested() {
    ++depth_;
    return end_value();
  }

  Text text_ = nullptr;      // target of the next value, if it has this type
  Number number_ = nullptr;  // likewise
  int depth_ = 0;
};

}  // namespace

std::optional<LogRecord> parse_record(std::string_view line) {
  Reader reader;
  const bool whole = nlohmann::json::sax_parse(line, &reader);
  if (!whole || !reader.is_object) return std::nullopt;
  return std::move(reader.record);
}

}  // namespace ration::pool::replay
