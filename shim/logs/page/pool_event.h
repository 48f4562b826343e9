// The part of a record that a map of the pool needs (an event), and a file of many events. Layer: logs. Threads: none
// of its own.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "logs/page/sites.h"
#include "logs/reader/record.h"

namespace ration::logs {

struct PoolEvent {
  enum class Type : std::uint8_t { alloc, free, slab_alloc, slab_free, other };

  std::uint64_t seq = 0, ts_ns = 0, address = 0, bytes = 0, requested = 0, slab = 0;
  std::uint32_t device = 0, site = 0, kind = 0;  // kind: a number in Names
  Type type = Type::other;
  bool is_charged = true, is_range = false, is_granule = false;
};

// `site`: the site of the record if it is an `alloc`.
PoolEvent pool_event(const Record &record, std::uint32_t site, Names &names);

// Keeps events in an unnamed temporary file, because they may need more room than there is memory.
class EventFile {
 public:
  EventFile();

  void add(const PoolEvent &event);
  // Reads the next event, beginning with the first. Call this after the last add(). Returns false after the last event.
  bool next(PoolEvent &event);
  // False: the file could not be created, written or read.
  bool is_whole() const { return is_whole_; }

 private:
  void write();

  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<PoolEvent> buffer_;
  std::size_t at_ = 0;
  bool is_whole_ = true, reads_ = false;
};

}  // namespace ration::logs
