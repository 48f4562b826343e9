#include "events/summary_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/open_beyond_streams.h"
#include "base/saturating.h"
#include "events/diagnostics.h"

namespace ration::events {
namespace {

constexpr int kMostPagesOfOnePid = 1000;

// Warns that `ration run` will not learn of this process. Not called if the folder is gone, since its run has ended.
void say_unheard(const std::string &path, const char *why) {
  say("no figures for the summary of ration run: " + path + ": " + why);
}

int create_file(const std::string &path) {
  int file = -1;
  for (int number = 1; file < 0 && number <= kMostPagesOfOnePid; ++number) {
    const std::string candidate = number == 1 ? path : path + "." + std::to_string(number);
    file = open_beyond_streams(AT_FDCWD, candidate.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0 && errno != EEXIST) {
      break;
    }
  }
  if (file >= 0) {
    fchmod(file, 0600);  // whatever the umask is
  }
  return file;
}

void *map_file(const std::string &path) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(SummaryPage)) {
    say_unheard(path, "the limit of file sizes (ulimit -f) is too small");
    return MAP_FAILED;  // otherwise posix_fallocate would raise SIGXFSZ in the program
  }
  const int file = create_file(path);
  if (file < 0) {
    if (errno != ENOENT) {
      say_unheard(path, std::strerror(errno));
    }
    return MAP_FAILED;
  }
  // Allocates space first: on a full file system, a store into a mapped hole would raise SIGBUS in the program.
  void *page = MAP_FAILED;
  const int error = posix_fallocate(file, 0, sizeof(SummaryPage));
  if (error != 0) {
    say_unheard(path, std::strerror(error));
  } else {
    page = mmap(nullptr, sizeof(SummaryPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  return page;
}

std::uint64_t value_of(const std::atomic<std::uint64_t> &value) {
  return value.load(std::memory_order_relaxed);
}

std::vector<Summary::Group> groups_in(const SummaryPage &page, int device) {
  std::vector<Summary::Group> groups;
  for (unsigned i = 0; i < kMostGroups; ++i) {
    const SummaryPage::Group &group = page.groups[i];
    if (group.is_written.load(std::memory_order_acquire) != 0) {
      const GroupFigures &figures = page.group_figures[device][i];
      groups.push_back({group.kind, std::string(group.name, strnlen(group.name, sizeof(group.name))),
                        value_of(figures.limit), value_of(figures.most_claimed), group.random});
    }
  }
  return groups;
}

std::vector<Holder> holders_in(const SummaryPage &page, int device) {
  const SummaryPage::Holders &from = page.holders[device];
  std::vector<Holder> holders;
  for (unsigned i = 0; i < std::min(from.count.load(std::memory_order_acquire), kMostHolders); ++i) {
    const SummaryPage::Holders::Holder &each = from.of[i];
    holders.push_back({each.pid, std::string(each.program, strnlen(each.program, sizeof(each.program))), each.reserved,
                       0, each.guarantee});
  }
  return holders;
}

SummaryPage::Refused::Request refused_in(const SummaryPage &page, int device) {
  const SummaryPage::Refused &refused = page.refused[device];
  const std::uint32_t current = refused.current.load(std::memory_order_acquire);
  return current == 1 || current == 2 ? refused.of[current - 1] : SummaryPage::Refused::Request{};
}

}  // namespace

SummaryPage *create_summary_page(const std::string &directory, std::int64_t pid, const std::string &program) {
  void *memory = directory.empty() ? MAP_FAILED : map_file(directory + "/" + std::to_string(pid));
  if (memory == MAP_FAILED) {
    memory = mmap(nullptr, sizeof(SummaryPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  auto *page = static_cast<SummaryPage *>(memory);
  page->version = SummaryPage::kVersion;
  page->size = sizeof(SummaryPage);
  page->pid = pid;
  std::strncpy(page->program, program.c_str(), sizeof(page->program) - 1);
  page->magic.store(SummaryPage::kMagic, std::memory_order_release);  // pairs with the acquire in read_summary
  return page;
}

void publish_group(SummaryPage &page, unsigned number, std::uint32_t kind, const std::string &name,
                   std::uint64_t random) {
  SummaryPage::Group &group = page.groups[number];
  group.kind = kind;
  group.random = random;
  name.copy(group.name, sizeof(group.name));
  group.is_written.store(1, std::memory_order_release);  // pairs with the acquire in groups_in
}

void publish_holders(SummaryPage &page, int device, const std::vector<Holder> &holders, std::uint64_t more) {
  SummaryPage::Holders &into = page.holders[device];
  if (holders.empty() || into.is_taken.exchange(1, std::memory_order_relaxed) != 0) {
    return;
  }
  const std::size_t count = std::min<std::size_t>(holders.size(), kMostHolders);
  for (std::size_t i = 0; i < count; ++i) {
    SummaryPage::Holders::Holder &holder = into.of[i];
    holder.reserved = holders[i].reserved;
    holder.guarantee = holders[i].guarantee;
    holder.pid = holders[i].pid;
    const std::string &program = holders[i].program;
    program.copy(holder.program, sizeof(holder.program), minus_or_zero(program.size(), sizeof(holder.program)));
  }
  into.more = more + (holders.size() - count);
  into.count.store(static_cast<std::uint32_t>(count),
                   std::memory_order_release);  // pairs with the acquire in holders_in
}

void publish_refusal(SummaryPage &page, int device, const SummaryPage::Refused::Request &request) {
  SummaryPage::Refused &into = page.refused[device];
  if (request.bytes <= refused_in(page, device).bytes) {
    return;
  }
  const std::uint32_t next = into.current.load(std::memory_order_relaxed) == 1 ? 2 : 1;
  into.of[next - 1] = request;
  into.current.store(next, std::memory_order_release);  // pairs with the acquire in refused_in
}

void publish_log(SummaryPage &page, const std::string &path) {
  if (path.size() <= sizeof(page.log)) {
    std::memcpy(page.log, path.data(), path.size());
    page.log_bytes.store(path.size(), std::memory_order_release);  // pairs with the acquire in read_summary
  }
}

bool read_summary(const std::string &file, Summary &summary) {
  const int handle = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (handle < 0) {
    return false;
  }
  struct stat status {};
  void *memory = MAP_FAILED;
  if (fstat(handle, &status) == 0 && static_cast<std::size_t>(status.st_size) >= sizeof(SummaryPage)) {
    memory = mmap(nullptr, sizeof(SummaryPage), PROT_READ, MAP_SHARED, handle, 0);
  }
  close(handle);
  if (memory == MAP_FAILED) {
    return false;
  }
  const auto *page = static_cast<const SummaryPage *>(memory);
  const bool valid = page->magic.load(std::memory_order_acquire) == SummaryPage::kMagic &&
                     page->version == SummaryPage::kVersion && page->size == sizeof(SummaryPage);
  if (valid) {
    summary = {};
    summary.pid = page->pid;
    summary.program.assign(page->program, strnlen(page->program, sizeof(page->program)));
    summary.failed_frees = value_of(page->failed_frees);
    summary.null_frees = value_of(page->null_frees);
    summary.failed_allocs = value_of(page->failed_allocs);
    summary.lost_records = page->lost_records.load(std::memory_order_relaxed);
    summary.lost_error = static_cast<int>(page->lost_error.load(std::memory_order_relaxed));
    summary.refused_shares = value_of(page->refused_shares);
    summary.host_bytes = value_of(page->host_bytes);
    summary.host_peak_bytes = value_of(page->host_peak_bytes);
    summary.managed_bytes = value_of(page->managed_bytes);
    summary.managed_peak_bytes = value_of(page->managed_peak_bytes);
    summary.unknown_of_memory = value_of(page->unknown_of_memory);
    summary.unknown_is_cut = page->unknown_is_cut.load(std::memory_order_relaxed) != 0;
    for (const SummaryPage::Name &name : page->unknown) {
      if (name.is_written.load(std::memory_order_acquire) != 0) {
        summary.unknown.emplace_back(name.text, strnlen(name.text, sizeof(name.text)));
      }
    }
    summary.log.assign(page->log,
                       std::min<std::size_t>(page->log_bytes.load(std::memory_order_acquire), sizeof(page->log)));
    const int devices = std::min<int>(static_cast<int>(page->device_count.load()), kMaxTalliedDevices);
    for (int i = 0; i < devices; ++i) {
      const DeviceTally &tally = page->devices[i];
      // The process may still run: each total is read once, and frees before allocs, so frees never exceed allocs.
      const std::uint64_t frees = value_of(tally.frees);
      const std::uint64_t allocs = std::max(value_of(tally.allocs), frees);
      Summary::Device device{value_of(tally.total),
                             value_of(tally.limit),
                             value_of(tally.live_bytes),
                             allocs - frees,
                             value_of(tally.peak_bytes),
                             allocs,
                             frees,
                             tally.limit_asked.load(std::memory_order_relaxed) != 0,
                             {},
                             value_of(tally.reserved_bytes),
                             value_of(tally.reserved_peak_bytes),
                             value_of(tally.waits),
                             value_of(tally.group_limit),
                             value_of(page->preallocated[i]),
                             value_of(tally.overhead_peak),
                             {},
                             tally.overhead_unmeasured.load(std::memory_order_relaxed),
                             refused_in(*page, i),
                             page->limit_is_later[i].load(std::memory_order_relaxed) != 0,
                             std::string(page->uuids[i], strnlen(page->uuids[i], sizeof(page->uuids[i]))),
                             groups_in(*page, i),
                             holders_in(*page, i),
                             page->holders[i].more};
      for (int reason = 0; reason < kReasonCount; ++reason) {
        device.denied[reason] = value_of(tally.denied[reason]);
      }
      for (int kind = 0; kind < kOverheadKinds; ++kind) {
        device.overhead[kind] = value_of(tally.overhead[kind]);
      }
      std::uint64_t smallest = UINT64_MAX;
      for (const Summary::Group &group : device.groups) {
        smallest = group.limit != 0 ? std::min(smallest, group.limit) : smallest;
      }
      device.group_limit = smallest != UINT64_MAX ? smallest : device.group_limit;  // `ration set` may have changed it
      summary.devices.push_back(device);
    }
  }
  munmap(memory, sizeof(SummaryPage));
  return valid;
}

}  // namespace ration::events
