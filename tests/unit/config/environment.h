// An environment block for one test.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "config/settings.h"

namespace ration::config {

struct Reading {
  Settings settings;
  std::vector<Problem> problems;

  std::string lines() const {
    std::string all;
    for (const Problem &problem : problems) {
      all += problem.line + "\n";
    }
    return all;
  }
};

inline Reading read(std::initializer_list<std::string> entries) {
  const std::vector<std::string> kept(entries);
  std::vector<const char *> block;
  for (const std::string &entry : kept) {
    block.push_back(entry.c_str());
  }
  block.push_back(nullptr);
  Reading reading;
  reading.settings = read_environment(block.data(), reading.problems);
  return reading;
}

inline constexpr std::uint64_t kSixteenGiB = 16ull << 30;
inline constexpr std::uint64_t kStrictest = 12ull << 30;  // 75 % of the device

inline DeviceIdentity device(int ordinal, std::string uuid = "", std::uint64_t total = kSixteenGiB) {
  return {ordinal, std::move(uuid), total};
}

}  // namespace ration::config
