// A log as its readers see it: strict JSON, line by line, and what the lines add up to.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"

// In one place: a comparison's text would have every test build the writer of JSON again.
template <>
struct Catch::StringMaker<nlohmann::json> {
  static std::string convert(const nlohmann::json &value);
};

namespace ration::test {

using nlohmann::json;

std::string text_of(const std::string &path);

// Throws where a line is no JSON or the last one has no end.
std::vector<json> log_lines(const std::string &path);
std::vector<json> of_type(const std::vector<json> &lines, const std::string &type);

// Whether `seq` of everything but the first line counts 1, 2, 3, …
bool is_consecutive(const std::vector<json> &lines);

struct Sums {
  std::map<int, std::uint64_t> live, peak;
  std::map<int, std::uint64_t> reserved, reserved_peak;
  std::uint64_t allocs = 0, frees = 0, ooms = 0, refused_ipc = 0, waits = 0;
  bool one_owner_each = true;  // no address was given out twice without a free between, none freed that was not live

  void reserve(const json &line);
  void release(const json &line);
};

Sums sums_of(const std::vector<json> &lines);

}  // namespace ration::test
