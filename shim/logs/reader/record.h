// One record of a log (shim/events/README.md), in the form that readers need. Layer: logs. Values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ration::logs {

class Record {
 public:
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
    names,
    end,
    other
  };

  Record() = default;
  // Reads a JSON object that is part of a record.
  explicit Record(const nlohmann::json &object);
  // Reads a line, reusing the memory of the previous one. If it is not an object, empties the record, returns false.
  bool read(std::string_view line);

  Type type = Type::other;

  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::uint64_t number(std::string_view key) const { return known_number(key).value_or(0); }
  // nullopt: the record has no number with this key.
  std::optional<std::uint64_t> known_number(std::string_view key) const {
    const Field *found = find(key);
    return found != nullptr && found->kind == Kind::number ? std::optional(found->number) : std::nullopt;
  }
  std::string_view text(std::string_view key) const {
    const Field *found = find(key);
    return found != nullptr && found->kind == Kind::text ? std::string_view(found->text) : std::string_view();
  }
  bool flag(std::string_view key) const {
    const nlohmann::json &found = other(key);
    return found.is_boolean() && found.get<bool>();
  }
  // The array with this key; empty if there is none.
  const nlohmann::json &list(std::string_view key) const {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const nlohmann::json &found = other(key);
    return found.is_array() ? found : kEmpty;
  }
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> all;
    for (const nlohmann::json &each : list(key)) {
      if (each.is_string()) {
        all.push_back(each.get<std::string>());
      }
    }
    return all;
  }
  // The value with this key; null if there is none.
  nlohmann::json value(std::string_view key) const;
  // For a `meta` record: the number of the log's first record.
  std::uint64_t first_seq() const { return std::max<std::uint64_t>(number("first_seq"), 1); }
  // The number of missing records that this record reports: before the log's first record, or lost at this point.
  std::uint64_t missing() const {
    return type == Type::meta ? first_seq() - 1 : type == Type::dropped ? number("count") : 0;
  }
  std::size_t device() const { return number("dev"); }
  // True if the block counts in the totals of its device.
  bool is_charged() const { return !has("charged"); }

 private:
  enum class Kind { number, text, other };
  struct Field {
    std::string key;
    Kind kind = Kind::other;
    std::uint64_t number = 0;
    std::string text;
    nlohmann::json value;  // used if `kind` is `other`
  };
  class Reading;

  const Field *find(std::string_view key) const {
    const auto end = fields_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find_if(fields_.begin(), end, [key](const Field &each) { return each.key == key; });
    return found == end ? nullptr : &*found;
  }
  const nlohmann::json &other(std::string_view key) const {
    static const nlohmann::json kNone;
    const Field *found = find(key);
    return found != nullptr && found->kind == Kind::other ? found->value : kNone;
  }
  Field &add(std::string_view key);

  std::vector<Field> fields_;  // the first `count_` belong to the record; the rest keep memory for reuse
  std::size_t count_ = 0;
};

}  // namespace ration::logs
