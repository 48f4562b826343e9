// Layout of the file of a process that shares pool blocks: a header page, then one record for each block; and the token
// that a program receives in place of a driver's handle.
// Layer: ledger. Threads, and processes: the exporter writes, others read, except `opener`; any of them may die
// between two stores.
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

// What a block lies in.
enum class ExportKind : std::uint64_t {
  slab,      // an allocation of the driver's, which the handle names
  granules,  // physical memory, whose descriptors the exporter sends (part_socket.h)
};

// The position of a block in what it lies in.
struct ExportedBlock {
  unsigned char handle[64] = {};  // of a slab
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t slab_bytes = 0;  // or of all granules together
  ExportKind kind = ExportKind::slab;
};

namespace shared {

inline constexpr std::uint64_t kExportMagic = 0x5450584549544152;  // "RATIEXPT"
// Grows with every change of this file. Only this version is accepted.
inline constexpr std::uint32_t kExportVersion = 3;

// One less than there are life bytes: the first is the exporter's, the others belong to the records.
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

// Openers of a record that the exporter can tell from their lock alone: where more have it open, or one is of another
// PID namespace, its lock counts only.
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
  // Marks of its openers (ledger/process_end.h), 0: free. An opener takes a place by an exchange and clears it when it
  // closes the block; the exporter clears it after the opener's death.
  ExportWord opener[kOpeners];
};

static_assert(sizeof(ExportHeader) == 4096 && sizeof(ExportRecord) == 256);

inline constexpr std::size_t kExportBytes = sizeof(ExportHeader) + std::size_t{kExportRecords} * sizeof(ExportRecord);

}  // namespace shared
}  // namespace ration::ledger
