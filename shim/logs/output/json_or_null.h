// A figure in a JSON document, or null if it is unknown. Layer: logs. Threads: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace ration::logs {

template <class Value>
nlohmann::ordered_json or_null(bool is_known, const Value &value) {
  return is_known ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value> &value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace ration::logs
