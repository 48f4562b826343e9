// Short logs, for the tests of log readers.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "logs/history/history.h"
#include "logs/reader/log_reader.h"

namespace ration::test {

using logs::History;
using logs::LogReader;
using logs::Record;
using By = History::By;

inline constexpr char kMetaRecord[] =
    R"({"t":"meta","schema":"ration.events/1","exe":"/bin/train","pid":42,"devices":[)"
    R"({"dev":0,"name":"GPU","total":1000000000,"limit":8000000,"limit_asked":true}]})";

// A log with the given records, which lack `ts` and `seq`.
inline std::string log_of(const std::vector<std::string> &records) {
  std::string text = std::string(kMetaRecord) + "\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    text += records[i] + ",\"ts\":" + std::to_string(1000 * (i + 1)) + ",\"seq\":" + std::to_string(i + 1) + "}\n";
  }
  return text;
}

inline std::string alloc_record(int address, int bytes, const std::string &more = R"("src":"driver")") {
  return R"({"t":"alloc","dev":0,"tid":7,"stream":0,"api":"cuMemAlloc_v2","kind":"device","addr":")" +
         std::to_string(address) + R"(","size":)" + std::to_string(bytes) + R"(,"req":)" + std::to_string(bytes - 1) +
         "," + more;
}

inline std::string free_record(int address) {
  return R"({"t":"free","dev":0,"kind":"device","addr":")" + std::to_string(address) + "\"";
}

inline std::string oom_record(const std::string &reason, std::uint64_t asked, std::uint64_t used,
                              std::uint64_t largest_free) {
  return R"({"t":"oom","dev":0,"api":"cuMemAlloc_v2","reason":")" + reason + R"(","req":)" + std::to_string(asked) +
         R"(,"used":)" + std::to_string(used) + R"(,"limit":8000000,"device_free":1,"largest_free":)" +
         std::to_string(largest_free);
}

inline const std::string kEndRecord = R"({"t":"end","failed_allocs":0,"failed_frees":0)";

inline History history_of(const std::string &text, By by = By::caller) {
  std::istringstream log(text);
  LogReader reader(log);
  History history(by);
  for (Record record; reader.next(record);) {
    history.add(record);
  }
  history.finish();
  REQUIRE(reader.problem().empty());
  return history;
}

inline std::string problem_in(const std::string &text) {
  std::istringstream log(text);
  LogReader reader(log);
  for (Record record; reader.next(record);) {
  }
  return reader.problem();
}

inline bool has_line(const std::vector<std::string> &lines, const std::string &words) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string &line) { return line.find(words) != std::string::npos; });
}

}  // namespace ration::test
