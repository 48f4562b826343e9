// Reads a log as its readers do, as strict JSON line by line, and sums up the lines.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "catch.h"

// Defined in one file, because a comparison's text would otherwise instantiate the JSON writer in every test.
template <>
struct Catch::StringMaker<nlohmann::json> {
  static std::string convert(const nlohmann::json &value);
};

namespace ration::test {

using nlohmann::json;

std::string text_of(const std::string &path);

// Throws if a line is not JSON or the last one has no newline.
std::vector<json> log_lines(const std::string &path);
std::vector<json> of_type(const std::vector<json> &lines, const std::string &type);

// True if `seq` counts 1, 2, 3, … in all lines but the first.
bool is_consecutive(const std::vector<json> &lines);

struct Sums {
  std::map<int, std::uint64_t> live, peak;
  std::map<int, std::uint64_t> reserved, reserved_peak;
  std::uint64_t allocs = 0, frees = 0, ooms = 0, refused_ipc = 0, waits = 0;
  // True if no address was given out twice without a free in between, and none was freed that was not live.
  bool one_owner_each = true;

  void reserve(const json &line);
  void release(const json &line);
};

Sums sums_of(const std::vector<json> &lines);

}  // namespace ration::test
