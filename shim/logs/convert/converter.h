// Writes the records of a log in another tool's format. Layer: logs. Threads: none of its own.
// Memory: proportional to live blocks and stacks, not to records.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "logs/convert/stack_totals.h"
#include "logs/reader/record.h"

namespace ration::logs {

// Design: design/log.md#other-formats
class Converter {
 public:
  virtual ~Converter() = default;
  // Takes the records of one log, in their order.
  virtual void add(const Record &record) = 0;
  // Call this after the last record.
  virtual void finish() = 0;
};

// Each of these converters writes to `out`, which must outlive it.
std::unique_ptr<Converter> chrome_trace(std::ostream &out);
std::unique_ptr<Converter> rmm_csv(std::ostream &out);
std::unique_ptr<Converter> csv_table(std::ostream &out);
// `in_use`: what the profile's two inuse_… types count: kPeak or kLeaked.
std::unique_ptr<Converter> pprof_profile(std::ostream &out, Amount in_use);
std::unique_ptr<Converter> collapsed_stacks(std::ostream &out, Amount amount);
std::unique_ptr<Converter> torch_snapshot(std::ostream &out);

}  // namespace ration::logs
