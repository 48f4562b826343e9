#include "tests/simcuda/machine.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/simcuda/machine_file.h"

namespace simcuda {
namespace {

constexpr int kUnsettledTries = 10000;

std::string file_of(const Settings &settings) {
  return settings.machine + "/machine";
}

std::uint64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000ull + static_cast<std::uint64_t>(now.tv_nsec);
}

MachinePage *private_page(const Settings &settings) {
  void *memory = ::mmap(nullptr, sizeof(MachinePage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto *page = static_cast<MachinePage *>(memory);
  fill_in(page, settings);
  return page;
}

void empty(Slot &slot) {
  for (Held &held : slot.held) {
    held.pending.store(0);
    held.committed.store(0);
  }
  slot.found_dead_ns.store(0);
  slot.ended.store(0);
}

// Maps the machine's page and creates its folder if needed; null, with a line on stderr, if that fails.
MachinePage *enter(const Settings &settings, MachineFile &file) {
  if (::mkdir(settings.machine.c_str(), 0700) != 0 && errno != EEXIST) {
    complain("simcuda: SIMCUDA_MACHINE=" + settings.machine + ": " + std::strerror(errno));
    return nullptr;
  }
  file = MachineFile::open(file_of(settings), true);
  MachinePage *page = file.valid() ? file.map(settings) : nullptr;
  if (page == nullptr) complain("simcuda: SIMCUDA_MACHINE=" + settings.machine + " cannot be used as a machine");
  return page;
}

}  // namespace

Machine *Machine::join(const Settings &settings) {
  if (settings.device_bytes.empty()) return nullptr;
  if (settings.machine.empty()) {
    MachinePage *page = private_page(settings);
    if (page == nullptr) return nullptr;
    auto *machine = new Machine(page, "", settings.return_ms);
    machine->slot_ = 0;
    page->slot[0].pid.store(static_cast<std::uint32_t>(::getpid()));
    page->slots_used.store(1);
    return machine;
  }
  MachineFile file = MachineFile::none();
  MachinePage *page = enter(settings, file);
  if (page == nullptr) return nullptr;
  auto *machine = new Machine(page, file_of(settings), settings.return_ms);
  machine->reap();
  // Prefers unused slots: a dead process's slot may still hold memory that is not reclaimed yet.
  for (const bool dead_too : {false, true}) {
    for (unsigned i = 0; i < kSlots; ++i) {
      Slot &slot = page->slot[i];
      if ((slot.pid.load() != 0 && !dead_too) || !file.lock_slot(i)) continue;
      if (slot.pid.load() != 0 && !dead_too) {  // taken and released between the two loads
        file.unlock_slot(i);
        continue;
      }
      empty(slot);
      slot.pid.store(static_cast<std::uint32_t>(::getpid()));
      std::uint32_t used = page->slots_used.load();
      while (used <= i && !page->slots_used.compare_exchange_weak(used, i + 1)) {
      }
      machine->slot_ = i;
      return machine;
    }
  }
  complain("simcuda: SIMCUDA_MACHINE=" + settings.machine + ": all slots are taken");
  return nullptr;
}

Machine *Machine::watch(const Settings &settings) {
  if (settings.device_bytes.empty()) return nullptr;
  if (settings.machine.empty()) return watch(private_page(settings));
  MachineFile file = MachineFile::none();
  MachinePage *page = enter(settings, file);
  return page == nullptr ? nullptr : new Machine(page, file_of(settings), settings.return_ms);
}

Machine *Machine::watch(void *page) {
  return page == nullptr ? nullptr : new Machine(static_cast<MachinePage *>(page), "", 0);
}

Machine::Sum Machine::sum(unsigned device) const {
  Sum sum{0, false};
  const std::uint32_t used = page_->slots_used.load();
  for (unsigned i = 0; i < used; ++i) {
    const std::uint64_t pending = page_->slot[i].held[device].pending.load();  // before committed: see Held
    sum.bytes += pending + page_->slot[i].held[device].committed.load();
    sum.reservation_pending |= i != slot_ && pending != 0;
  }
  return sum;
}

bool Machine::reserve(unsigned device, std::uint64_t bytes) {
  const std::uint64_t total = page_->device[device].bytes;
  if (bytes > total) return false;
  Held &mine = page_->slot[slot_].held[device];
  for (int tries = 0; tries < kUnsettledTries; ++tries) {
    mine.pending.fetch_add(bytes);
    const Sum all = sum(device);
    if (all.bytes <= total) {
      mine.committed.fetch_add(bytes);
      mine.pending.fetch_sub(bytes);
      return true;
    }
    mine.pending.fetch_sub(bytes);
    if (tries != 0 && !all.reservation_pending) return false;
    if (tries % 1000 == 0) {
      reap();  // in every round: another process may have died during its reservation
    } else {
      ::sched_yield();  // the other process's reservation may fail, and then this one fits
    }
  }
  return false;
}

void Machine::release(unsigned device, std::uint64_t bytes) {
  page_->slot[slot_].held[device].committed.fetch_sub(bytes);
}

// One pass can read process A before it frees and process B after it allocates, and so count bytes that were never held
// at once. So the sum is read until two passes agree, in most cases the first two.
std::uint64_t Machine::used(unsigned device) {
  constexpr int kLooks = 1000;
  reap();
  std::vector<std::uint64_t> held;
  for (int look = 0; look < kLooks; ++look) {
    std::vector<std::uint64_t> before = std::exchange(held, {});
    for (unsigned i = 0; i < page_->slots_used.load(); ++i) {
      held.push_back(page_->slot[i].held[device].committed.load());
    }
    if (held == before) break;
  }
  return std::min(std::accumulate(held.begin(), held.end(), std::uint64_t{0}), page_->device[device].bytes);
}

std::vector<Machine::Holder> Machine::holders(unsigned device) {
  reap();
  std::vector<Holder> holders;
  for (unsigned i = 0; i < page_->slots_used.load(); ++i) {
    const Slot &slot = page_->slot[i];
    const std::uint64_t bytes = slot.held[device].committed.load();
    if (slot.pid.load() != 0 && bytes != 0) holders.push_back({slot.pid.load(), bytes});
  }
  return holders;
}

void Machine::reap() {
  if (file_.empty()) return;
  MachineFile file = MachineFile::none();
  const std::uint32_t used = page_->slots_used.load();
  for (unsigned i = 0; i < used; ++i) {
    Slot &slot = page_->slot[i];
    if (i == slot_ || slot.pid.load() == 0) continue;
    if (!file.valid()) {
      // Uses a separate file description: the one that holds this process's lock could take that lock again.
      file = MachineFile::open(file_, false);
      if (!file.valid()) return;
    }
    if (!file.lock_slot(i)) continue;  // the owner is alive
    if (slot.pid.load() != 0) {
      const std::uint64_t now = now_ns();
      if (slot.found_dead_ns.load() == 0) slot.found_dead_ns.store(now);
      const std::uint64_t linger_ns = slot.ended.load() != 0 ? 0 : std::uint64_t{return_ms_} * 1000000;
      if (now - slot.found_dead_ns.load() >= linger_ns) {
        empty(slot);
        slot.pid.store(0);  // last: until then the next process repeats an interrupted cleanup
      }
    }
    file.unlock_slot(i);
  }
}

void Machine::mark_ended() {
  if (slot_ < kSlots) page_->slot[slot_].ended.store(1);
}

}  // namespace simcuda
