// Example groups, as a snapshot of the ledger returns them. Threads: values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/usage/process_rows.h"

namespace ration::cli {

inline constexpr std::uint64_t kMi = 1ull << 20;
inline constexpr std::uint64_t kGi = 1ull << 30;
inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::uint64_t kNow = 1'700'000'000 * kSecond;
inline constexpr char kFirstGpu[] = "GPU-1f2e3d4c-0000-0000-0000-000000000001";
inline constexpr char kSecondGpu[] = "GPU-99887766-0000-0000-0000-000000000002";

inline ledger::DeviceUse use(const std::string &uuid, std::uint64_t reserved) {
  ledger::DeviceUse out;
  out.uuid = uuid;
  out.reserved = reserved;
  out.used = reserved / 2;
  out.peak = reserved;
  out.published_unix_ns = kNow - kSecond;
  return out;
}

inline ledger::Member member(std::uint64_t identity, int pid, std::vector<ledger::DeviceUse> devices) {
  ledger::Member out;
  out.identity = identity;
  out.pid = pid;
  out.uid = 1000;
  out.pid_namespace = 4026531836;
  out.start_unix_ns = kNow - 90 * kSecond;
  out.program = "train";
  out.devices = std::move(devices);
  return out;
}

inline ledger::Group group(ledger::GroupKind kind, const std::string &name, std::vector<ledger::GroupDevice> devices,
                           std::vector<ledger::Member> members) {
  return {kind, name, "", std::move(devices), std::move(members)};
}

inline Usage usage(const std::vector<ledger::Group> &groups) {
  return usage_of(groups, "", kNow);
}

// One process in no group.
inline Usage one_process(ledger::Member process) {
  return usage({group(ledger::GroupKind::kNone, "", {}, {std::move(process)})});
}

}  // namespace ration::cli
