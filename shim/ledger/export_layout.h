// The layout of the file of a process that shares pool blocks (a header page, then one record for each block), and the
// token that a program receives instead of the driver's handle.
// Layer: ledger. Threads, and processes: the exporter writes and others read, except that openers write `opener`. Any
// process may die between two stores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ration::ledger {

// Design: design/ipc.md#tokens
struct ExportToken {
  static constexpr std::uint64_t kMagic = 0x4350494e4f495441;  // "ATIONIPC"
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t record = 0;
  std::uint64_t exporter = 0;
  std::uint64_t generation = 0;
  std::uint64_t nonce[2] = {};
  std::uint64_t unused[2] = {};
};
static_assert(sizeof(ExportToken) == 64);

// The kind of memory that a block is part of.
enum class ExportKind : std::uint64_t {
  slab,      // one allocation by the driver, which `handle` names
  granules,  // physical memory; the exporter sends its descriptors (part_socket.h)
};

// A block, and its position in the slab or the granules that it is part of.
struct ExportedBlock {
  unsigned char handle[64] = {};  // the slab's
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t slab_bytes = 0;  // size of the slab, or of all the granules together
  ExportKind kind = ExportKind::slab;
};

namespace shared {

inline constexpr std::uint64_t kExportMagic = 0x5450584549544152;  // "RATIEXPT"
// Increased with every change of this layout. Files of a different version are refused.
inline constexpr std::uint32_t kExportVersion = 3;

// One less than the number of life bytes: the exporter has the first life byte, and each record has one of the others.
inline constexpr std::uint32_t kExportRecords = 4095;
inline constexpr std::uint32_t kExporterLife = 0;
constexpr std::uint32_t life_of_record(std::uint32_t record) {
  return record + 1;
}

struct ExportHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t record_bytes;
  std::uint32_t records;
  std::uint64_t exporter;
  std::uint64_t pid_namespace;  // 0: unknown
  char unused[4056];
};

using ExportWord = std::atomic<std::uint64_t>;
static_assert(ExportWord::is_always_lock_free);

// A record has room for the process marks of this many openers. Of further openers, and of openers in another PID
// namespace, the exporter sees only the locks.
inline constexpr std::uint32_t kOpeners = 16;

struct ExportRecord {
  ExportWord state;  // generation << 1 | live; written last, cleared first
  ExportWord nonce[2];
  ExportWord offset;
  ExportWord bytes;
  ExportWord slab_bytes;
  ExportWord kind;
  ExportWord unused;
  ExportWord handle[8];
  // The process marks of the openers (ledger/process_end.h); 0: a free entry. An opener takes a free entry by an atomic
  // exchange and clears the entry when it closes the block. If the opener dies, the exporter clears the entry.
  ExportWord opener[kOpeners];
};

static_assert(sizeof(ExportHeader) == 4096 && sizeof(ExportRecord) == 256);

inline constexpr std::size_t kExportBytes = sizeof(ExportHeader) + std::size_t{kExportRecords} * sizeof(ExportRecord);

}  // namespace shared
}  // namespace ration::ledger
