// The page of totals that `ration run` reads however the process ended.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/asked_names.h"
#include "catch.h"
#include "events/summary_page.h"
#include "unit/events/child_process.h"
#include "unit/events/journal_fixture.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

namespace {

std::string only_file_in(const ScratchFolder &folder) {
  std::string only;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK(only.empty());
    only = entry.path();
  }
  return only;
}

events::Alloc pinned(std::uint64_t address, std::uint64_t bytes) {
  events::Alloc event = an_alloc(address, bytes);
  event.kind = events::Kind::host;
  event.charged = false;
  return event;
}

events::Free unpinned(std::uint64_t address, std::uint64_t bytes) {
  events::Free event = a_free(address, bytes);
  event.kind = events::Kind::host;
  event.charged = false;
  return event;
}

}  // namespace

namespace {

events::Oom refused(std::uint64_t requested, std::uint64_t largest_free) {
  events::Oom event = an_oom(events::Reason::limit);
  event.requested = requested;
  event.largest_free = largest_free;
  event.used = event.reserved = event.limit = 7000;
  event.quarantined = 0;
  event.device_free = 1 << 20;
  return event;
}

events::SummaryPage::Refused::Request largest_of(const std::vector<events::Oom> &refusals) {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to("", folder.path()), problem);
  journal.describe(two_devices(), 0);
  for (const events::Oom &each : refusals) {
    journal.record(each);
  }
  events::Summary summary;
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  return summary.devices[0].largest_refused;
}

}  // namespace

TEST_CASE("the largest refused request and what it lacked are of one refusal") {
  const auto largest = largest_of({refused(600, 100), refused(900, 800), refused(800, 0)});
  CHECK(largest.bytes == 900);
  CHECK(largest.lacking == 100);
  CHECK(largest.largest_free == 800);
  events::Oom step = refused(900, 900);  // of a driver's pool
  step.needed = 1400;
  CHECK(largest_of({step}).lacking == 500);
  events::Oom in_pages = refused(900, 300);  // of a pool of granules, beside blocks
  in_pages.used -= 500;
  in_pages.page_bytes = 200;
  in_pages.free_in_pages = 400;
  in_pages.untaken = 100;
  in_pages.device_free = 600;
  CHECK(largest_of({in_pages}).lacking == 500);
  in_pages.limit = in_pages.reserved - 70;
  CHECK(largest_of({in_pages}).lacking == 570);
  in_pages.reason = events::Reason::group;
  in_pages.group.claimed = in_pages.group.limit + 30;
  CHECK(largest_of({in_pages}).lacking == 530);
  in_pages.limit = in_pages.reserved;
  in_pages.reason = events::Reason::pool_holds;
  CHECK(largest_of({in_pages}).lacking == 500);
  in_pages.device_free = 599;
  CHECK(largest_of({in_pages}).lacking == 0);
}

TEST_CASE("how much more would have served a request is not known if free memory did not serve it") {
  events::Oom fragmented = refused(900, 800);
  fragmented.used -= 1;
  events::Oom unclean = refused(900, 800);
  unclean.quarantined = 1;
  events::Oom full_device = refused(900, 800);
  full_device.device_free = 899;
  events::Oom injected = refused(900, 800);
  injected.reason = events::Reason::fault;
  for (const events::Oom &each : {fragmented, unclean, full_device, injected}) {
    CHECK(largest_of({each}).bytes == 900);
    CHECK(largest_of({each}).lacking == 0);
    CHECK(largest_of({each}).largest_free == 800);
  }
  full_device.device_free = std::nullopt;
  CHECK(largest_of({full_device}).largest_free == UINT64_MAX);
}

TEST_CASE("the totals of a process outlive SIGKILL") {
  const ScratchFolder folder;
  const int status = in_child([&] {
    std::string problem;
    events::Journal journal(logging_to("", folder.path()), problem);
    journal.describe(two_devices(), 0);
    journal.record(an_alloc(0x1000, 300));
    journal.record(an_alloc(0x2000, 200, 1));
    journal.record(a_free(0x1000, 300));
    journal.record(an_oom(events::Reason::device, 1));
    journal.record(a_slab_alloc(1, 5000, 1));
    journal.record(a_slab_alloc(2, 700, 1));
    journal.record(a_slab_free(1, 5000, 1));
    journal.record(a_granule(3, 2000));
    journal.record(a_granule(4, 2000));
    journal.record(a_granule_end(4, 2000));
    journal.record(a_granule_end(3, 2000));
    journal.record(a_stitched_alloc(0x5000, 0, 3));
    journal.record(a_wait(1));
    journal.record(a_refused_share(1));
    journal.record(pinned(0x3000, 800));
    journal.record(pinned(0x4000, 100));
    journal.record(unpinned(0x4000, 100));
    events::Alloc managed = an_alloc(0x6000, 60);
    managed.kind = events::Kind::managed;
    managed.charged = false;
    journal.record(managed);
    journal.count_null_free();
    journal.note_limit(1, true, 700);
    return kill(getpid(), SIGKILL);
  });
  REQUIRE(WIFSIGNALED(status));
  events::Summary summary;
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  CHECK(std::to_string(summary.pid) == std::filesystem::path(only_file_in(folder)).filename());
  CHECK(summary.program == "unit_events");
  CHECK(summary.null_frees == 1);
  CHECK(summary.refused_shares == 1);
  CHECK(summary.host_bytes == 800);
  CHECK(summary.host_peak_bytes == 900);
  CHECK(summary.managed_peak_bytes == 60);
  REQUIRE(summary.devices.size() == 2);
  CHECK(summary.devices[0].peak_bytes == 300);
  CHECK(summary.devices[0].live_bytes == 0);
  CHECK(summary.devices[0].limit == 4ull << 30);
  CHECK(summary.devices[0].limit_asked);
  CHECK(summary.devices[1].live_bytes == 200);
  CHECK(summary.devices[1].live_count == 1);
  CHECK(summary.devices[1].denied[static_cast<int>(events::Reason::device)] == 1);
  CHECK(summary.devices[1].denied[static_cast<int>(events::Reason::pool_holds)] == 0);
  CHECK(summary.devices[1].reserved_bytes == 900);
  CHECK(summary.devices[1].reserved_peak_bytes == 5900);
  CHECK(summary.devices[1].waits == 1);
  CHECK(summary.devices[0].reserved_peak_bytes == 4000);
  CHECK(summary.devices[1].limit_asked);
  CHECK(summary.devices[1].limit == 700);
  CHECK(summary.devices[1].limit_is_later);
  CHECK_FALSE(summary.devices[0].limit_is_later);
}

TEST_CASE("a page has the groups of a process and what it saw of them, by device") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to("", folder.path()), problem);
  journal.name_group(0, 2, "lab", 7);
  journal.name_group(1, 1, std::string(100, 'x'), 8);
  journal.group_figures(0, 1).limit = 4000;
  journal.group_figures(0, 1).most_claimed = 3000;
  int taken = 0;
  journal.when_taken([](void *of, int device) { *static_cast<int *>(of) += device + 1; }, &taken);
  journal.describe(two_devices(), 0);
  journal.record(a_slab_alloc(1, 5000, 1));
  CHECK(taken == 2);
  journal.record(a_slab_free(1, 5000, 1));
  CHECK(taken == 2);
  events::Summary summary;
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  REQUIRE(summary.devices.size() == 2);
  CHECK(summary.devices[1].uuid == two_devices()[1].uuid);
  for (const events::Summary::Device &device : summary.devices) {
    REQUIRE(device.groups.size() == 2);
    CHECK(device.groups[0].kind == 2);
    CHECK(device.groups[0].random == 7);
    CHECK(device.groups[0].name == "lab");
    CHECK(device.groups[1].name == std::string(72, 'x'));
  }
  CHECK(summary.devices[0].groups[0].limit == 0);
  CHECK(summary.devices[1].groups[0].limit == 4000);
  CHECK(summary.devices[1].groups[0].most_claimed == 3000);
}

TEST_CASE("a page has the first unknown functions that may take memory, each once") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to("", folder.path()), problem);
  RationCoverage asked{};
  note_name(asked.unknown_names, "cuDeviceNovelty");
  note_name(asked.unknown_names, "cuMemNovelty");
  journal.publish(asked);
  journal.publish(asked);
  note_name(asked.newer, "cuMemAlloc@14000");
  journal.publish(asked);
  events::Summary summary;
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  CHECK(summary.unknown_of_memory == 2);
  CHECK(summary.unknown == std::vector<std::string>{"cuMemNovelty", "cuMemAlloc@14000"});
  for (int i = 0; i < 1000; ++i) {
    note_name(asked.unknown_names, ("cuMemNovelty" + std::to_string(i)).c_str());
  }
  journal.end(&asked);
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  CHECK(summary.unknown_of_memory == 1002);
  CHECK(summary.unknown == std::vector<std::string>{"cuMemNovelty", "cuMemAlloc@14000", "cuMemNovelty0"});
  CHECK_FALSE(summary.unknown_is_cut);
  for (int i = 0; i < RATION_NAMES_COUNTED; ++i) {
    note_name(asked.unknown_names, ("cuDeviceNovelty" + std::to_string(i)).c_str());
  }
  journal.end(&asked);
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  CHECK(summary.unknown_of_memory == 1002);
  CHECK(summary.unknown_is_cut);
}

TEST_CASE("threads that publish while others ask lose no name and show none twice") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to("", folder.path()), problem);
  RationCoverage asked{};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&journal, &asked] {
      for (int i = 0; i < 200; ++i) {
        if (note_name(asked.unknown_names, ("cuMem" + std::to_string(i)).c_str())) {
          journal.publish(asked);
        }
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  events::Summary summary;
  REQUIRE(events::read_summary(only_file_in(folder), summary));
  CHECK(summary.unknown_of_memory == 200);
  CHECK(std::set<std::string>(summary.unknown.begin(), summary.unknown.end()).size() == events::kMostUnknown);
}

TEST_CASE("a page is readable by its owner only") {
  const ScratchFolder folder;
  REQUIRE(events::create_summary_page(folder.path(), 77, "name") != nullptr);
  struct stat status {};
  REQUIRE(stat((folder / "77").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("two programs with one process ID have a page each") {
  const ScratchFolder folder;
  events::SummaryPage *first = events::create_summary_page(folder.path(), 77, "first");
  first->null_frees = 5;
  events::SummaryPage *second = events::create_summary_page(folder.path(), 77, "second");
  CHECK(first->null_frees == 5);  // SIGBUS here if the file was cut under the mapping
  CHECK(second->null_frees == 0);
  events::Summary summary;
  REQUIRE(events::read_summary(folder / "77", summary));
  CHECK(summary.program == "first");
  REQUIRE(events::read_summary(folder / "77.2", summary));
  CHECK(summary.program == "second");
}

TEST_CASE("without a page the totals are kept in private memory") {
  const ScratchFolder folder;
  events::SummaryPage *page = events::create_summary_page(folder / "missing", 77, "name");
  REQUIRE(page != nullptr);
  page->null_frees = 1;
  CHECK_FALSE(std::filesystem::exists(folder / "missing"));
}

TEST_CASE("a file size limit below a page does not raise SIGXFSZ") {
  const ScratchFolder folder;
  CHECK(exit_code_of([&] {
          const rlimit small = {4096, 4096};
          setrlimit(RLIMIT_FSIZE, &small);
          events::SummaryPage *page = events::create_summary_page(folder.path(), 77, "name");
          page->null_frees = 1;
          return 0;
        }) == 0);
}

TEST_CASE("a program name longer than its field is cut") {
  const ScratchFolder folder;
  events::create_summary_page(folder.path(), 77, std::string(500, 'n'));
  events::Summary summary;
  REQUIRE(events::read_summary(folder / "77", summary));
  CHECK(summary.program == std::string(47, 'n'));
}

TEST_CASE("a file that is not a page of this version is refused") {
  const ScratchFolder folder;
  events::create_summary_page(folder.path(), 77, "name");
  const std::string page = text_of(folder / "77");
  const auto refuses = [&](const std::string &bytes) {
    std::ofstream(folder / "other", std::ios::binary) << bytes;
    events::Summary summary;
    return !events::read_summary(folder / "other", summary);
  };
  CHECK_FALSE(refuses(page));
  CHECK(refuses(""));
  CHECK(refuses(page.substr(0, page.size() - 1)));
  CHECK(refuses(std::string(page.size(), '\xff')));
  CHECK(refuses(std::string(page.size(), '\0')));
  for (const std::size_t position : {0u, 8u, 12u}) {  // magic, version, size
    std::string other = page;
    other[position] = static_cast<char>(other[position] + 1);
    CHECK(refuses(other));
  }
}

TEST_CASE("a page with too many devices is read as far as it goes") {
  const ScratchFolder folder;
  events::SummaryPage *page = events::create_summary_page(folder.path(), 77, "name");
  events::Summary summary;
  page->device_count = 100'000;
  REQUIRE(events::read_summary(folder / "77", summary));
  CHECK(summary.devices.size() == events::kMaxTalliedDevices);
  page->device_count = UINT32_MAX;
  REQUIRE(events::read_summary(folder / "77", summary));
  CHECK(summary.devices.size() <= events::kMaxTalliedDevices);
}

TEST_CASE("reading a FIFO, a link or a folder neither waits nor succeeds") {
  const ScratchFolder folder;
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  events::create_summary_page(folder.path(), 77, "name");
  std::filesystem::create_symlink(folder / "77", folder / "link");
  events::Summary summary;
  CHECK_FALSE(events::read_summary(folder / "fifo", summary));
  CHECK_FALSE(events::read_summary(folder / "link", summary));
  CHECK_FALSE(events::read_summary(folder.path(), summary));
  CHECK_FALSE(events::read_summary(folder / "nothing", summary));
}
