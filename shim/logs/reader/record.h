// One record of a log (shim/events/README.md), as its readers need it. Layer: logs. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ration::logs {

struct Record {
  enum class Type {
    meta,
    alloc,
    free,
    slab_alloc,
    slab_free,
    wait,
    trim,
    sample,
    oom,
    dropped,
    mod,
    frame,
    stack,
    end,
    other
  };

  Type type = Type::other;
  nlohmann::json fields;

  std::uint64_t number(const char *key) const { return known_number(key).value_or(0); }
  // nullopt: it has none.
  std::optional<std::uint64_t> known_number(const char *key) const {
    const auto found = fields.find(key);
    return found != fields.end() && found->is_number_unsigned() ? std::optional(found->get<std::uint64_t>())
                                                                : std::nullopt;
  }
  std::string_view text(const char *key) const {
    const auto found = fields.find(key);
    return found != fields.end() && found->is_string()
               ? std::string_view(found->get_ref<const nlohmann::json::string_t &>())
               : std::string_view();
  }
  bool flag(const char *key) const {
    const auto found = fields.find(key);
    return found != fields.end() && found->is_boolean() && found->get<bool>();
  }
  // An array, empty where there is none.
  const nlohmann::json &list(const char *key) const {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const auto found = fields.find(key);
    return found != fields.end() && found->is_array() ? *found : kEmpty;
  }
  // Of a `meta`: the number of the log's first record.
  std::uint64_t first_seq() const { return std::max<std::uint64_t>(number("first_seq"), 1); }
  // Count of records that the log lacks according to this one: before its first, or lost where it stands.
  std::uint64_t missing() const {
    return type == Type::meta ? first_seq() - 1 : type == Type::dropped ? number("count") : 0;
  }
  std::size_t device() const { return number("dev"); }
  // Whether the block counts in the totals of its device.
  bool is_charged() const { return !fields.contains("charged"); }
};

}  // namespace ration::logs
