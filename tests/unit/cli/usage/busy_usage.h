// A busy machine, for tests of whole screens: three devices, twelve processes, groups, a container. Threads: values.
#pragma once

#include <iterator>
#include <string>
#include <vector>

#include "usage_examples.h"

namespace ration::cli {

inline constexpr char kThirdGpu[] = "GPU-c0ffee00-0000-0000-0000-000000000003";

struct BusyProcess {
  const char *gpu;
  const char *user;
  const char *command;
  std::uint64_t reserved_mi, used_mi, peak_mi, peak_used_mi, limit_mi;  // limit 0: none
  std::uint64_t failures;
  std::uint64_t age_s;
  bool in_lab;
};

inline constexpr BusyProcess kBusy[] = {
    {kFirstGpu, "ada", "/usr/bin/python3 train.py --model large --epochs 90", 40960, 36864, 45056, 40960, 0, 0, 93600,
     true},
    {kFirstGpu, "ada", "/usr/bin/python3 -m tensorboard.main --logdir runs", 512, 384, 512, 400, 1024, 0, 90000, true},
    {kFirstGpu, "grace", "./serve --port 8080", 16384, 12288, 20480, 14000, 20480, 3, 432000, true},
    {kFirstGpu, "grace", "./serve --port 8081", 8192, 4096, 8192, 6000, 20480, 0, 432000, true},
    {kSecondGpu, "linus", "/opt/bin/render scene.blend", 24576, 24000, 24576, 24576, 24576, 12, 3700, false},
    {kSecondGpu, "linus", "/opt/bin/render preview.blend", 2048, 1024, 4096, 3000, 8192, 0, 61, false},
    {kSecondGpu, "ada", "jupyter-lab", 256, 128, 1024, 900, 0, 0, 7260, true},
    {kSecondGpu, "root", "dcgm-exporter", 64, 64, 64, 64, 0, 0, 8640000, false},
    {kThirdGpu, "grace", "/usr/bin/python3 embed.py", 12288, 6144, 12288, 11000, 16384, 1, 600, true},
    {kThirdGpu, "grace", "", 4096, 2048, 4096, 3500, 16384, 0, 599, true},
    {kThirdGpu, "linus",
     "./simulate \xc3\xbc"
     "ber",
     1024, 1000, 1024, 1010, 2048, 0, 45, false},
    {kThirdGpu, "linus", "./simulate b", 300, 200, 300, 256, 2048, 0, 3, false},
};

// Devices of 80, 48 and 24 GiB, whose indexes are not in UUID order. The tenth process's command is unknown.
inline Usage busy_usage() {
  std::vector<ledger::Member> lab;
  std::vector<ledger::Member> alone;
  std::uint64_t reserved[3] = {};
  for (std::size_t i = 0; i < std::size(kBusy); ++i) {
    const BusyProcess &each = kBusy[i];
    ledger::DeviceUse held = use(each.gpu, each.reserved_mi * kMi);
    held.used = each.used_mi * kMi;
    held.peak = each.peak_mi * kMi;
    held.peak_used = each.peak_used_mi * kMi;
    held.limit = each.limit_mi == 0 ? ledger::kNoLimit : each.limit_mi * kMi;
    held.failures[0] = each.failures;
    ledger::Member process = member(i + 1, static_cast<int>(4100 + 7 * i), {held});
    process.start_unix_ns = kNow - each.age_s * kSecond;
    process.program = "/srv/jobs/embed-worker";
    (each.in_lab ? lab : alone).push_back(process);
    if (each.in_lab) {
      reserved[each.gpu == kFirstGpu ? 0 : each.gpu == kSecondGpu ? 1 : 2] += each.reserved_mi * kMi;
    }
  }
  const auto device = [](const char *uuid, std::uint64_t limit, std::uint64_t held, std::uint64_t size) {
    ledger::GroupDevice out{uuid, limit, held};
    out.size = size;
    return out;
  };
  Usage seen = usage(
      {group(ledger::GroupKind::kNamed, "lab",
             {device(kFirstGpu, 72 * kGi, reserved[0], 80 * kGi), device(kSecondGpu, 24 * kGi, reserved[1], 48 * kGi),
              device(kThirdGpu, ledger::kNoLimit, reserved[2], 24 * kGi)},
             lab),
       group(ledger::GroupKind::kNone, "", {device(kSecondGpu, ledger::kNoLimit, 0, 48 * kGi)}, alone)});
  for (ProcessRow &row : seen.processes) {
    row.user = kBusy[row.identity - 1].user;
    row.command = kBusy[row.identity - 1].command;
  }
  number_devices(seen, {{kFirstGpu, 0}, {kSecondGpu, 2}, {kThirdGpu, 1}});
  return seen;
}

}  // namespace ration::cli
