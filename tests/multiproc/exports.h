// Used by the tests of shared blocks to create an export file and open its blocks.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "catch.h"
#include "ledger/export_file.h"
#include "ledger/export_lease.h"
#include "processes.h"

namespace multiproc {

using ration::ledger::ExportedBlock;
using ration::ledger::ExportFile;
using ration::ledger::ExportLease;
using ration::ledger::ExportToken;

inline ExportedBlock block_at(std::uint64_t offset) {
  ExportedBlock block;
  std::memset(block.handle, 0x5a, sizeof(block.handle));
  block.offset = offset;
  block.bytes = 1000;
  block.slab_bytes = 1 << 20;
  return block;
}

inline std::unique_ptr<ExportFile> make_file(const Folder &folder) {
  std::string problem;
  auto file = ExportFile::make(folder.path(), problem);
  INFO(problem);
  REQUIRE(file != nullptr);
  return file;
}

inline std::unique_ptr<ExportLease> open_one(const Folder &folder, const ExportToken &token) {
  std::string problem;
  return ExportLease::take(folder.path(), token, problem);
}

inline bool is_open(const ExportFile &file, std::uint32_t record) {
  return ExportFile::Snapshot(file).is_open(record);
}

// To be run by a child; keeps a block open until the gate is no longer 0.
inline void keep_open(const Folder &folder, const ExportToken &token, Gate &has_it, Gate &over) {
  const auto lease = open_one(folder, token);
  expect(lease != nullptr, "the token opens nothing");
  open(has_it, 1);
  wait_while(over, 0);
}

struct Meeting {
  Gate has_it;
  Gate over;
  ExportToken token;
};

// To be run by a child; exports a block, publishes its token and keeps running.
inline void export_and_stay(const Folder &folder, Meeting &meeting) {
  std::string problem;
  const auto file = ExportFile::make(folder.path(), problem);
  expect(file != nullptr, problem.c_str());
  meeting.token = file->publish(7, block_at(512), ration::ledger::export_nonce());
  open(meeting.has_it, 1);
  wait_while(meeting.over, 0);
}

}  // namespace multiproc
