#include "policy/calls/room_maker.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/saturating.h"
#include "base/take_out.h"
#include "base/wait.h"
#include "policy/calls/call_parts.h"
#include "policy/contexts/any_context.h"

namespace ration::policy {

namespace {

using driver::real;

constexpr std::size_t kMostOrphanFences = 64;
// A member begins to give within a millisecond or two, and may take the memory again. The wait goes on as long as more
// comes.
constexpr std::uint64_t kAskNs = 50'000'000;
constexpr std::uint64_t kAskActiveNs = 250'000'000;  // while they take or give anything
constexpr std::uint64_t kAskAtMostNs = 1'000'000'000;
constexpr std::uint64_t kLookForDeadNs = 5'000'000;
constexpr long kAskStepNs = 20'000;
constexpr std::uint64_t kAskAgainNs = 1'000'000;
constexpr std::uint64_t kRemindNs = 20'000'000;  // between reminders of a wish that waits

// The driver's pools take note of finished work only at the next synchronise call. One of this stream never waits.
class EmptyStream {
 public:
  explicit EmptyStream(CUcontext context) : context_(context) {
    const RelaxedCapture relaxed;
    if (context != nullptr && real.cuStreamCreate.present() && real.cuStreamSynchronize.present() &&
        real.cuStreamDestroy_v2.present()) {
      const CurrentFor current(context);
      if (!current || real.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        stream_ = nullptr;
      }
    }
  }
  ~EmptyStream() {
    if (stream_ != nullptr) {
      const RelaxedCapture relaxed;
      real.cuStreamDestroy_v2(stream_);
    }
  }
  EmptyStream(const EmptyStream &) = delete;
  EmptyStream &operator=(const EmptyStream &) = delete;

  void synchronise() const {
    if (stream_ != nullptr) {
      const CurrentFor current(context_);
      if (current) {
        real.cuStreamSynchronize(stream_);
      }
    }
  }

 private:
  const CUcontext context_;
  CUstream stream_ = nullptr;
};

}  // namespace

bool RoomMaker::wait_for_work(int device, FunctionRef<bool()> enough) noexcept try {
  Fence fence;
  CUresult error = CUDA_SUCCESS;
  FenceTracker::Taken taken{};
  {
    const CaptureExclusion exclusion(parts_.fences.captures());
    taken = parts_.fences.take(fence, error, device);
  }
  if (taken != FenceTracker::Taken::taken) {
    return false;
  }
  const CUresult passed = parts_.fences.by_events() ? poll_briefly(fence, enough) : parts_.fences.wait(fence);
  for (const Fence::Mark &mark : fence.marks) {
    if (const Pin pin(*mark.context); passed == CUDA_SUCCESS && mark.event != nullptr && pin) {
      const CurrentFor current(mark.context->handle);
      if (current) {
        real.cuEventSynchronize(mark.event);
      }
    }
  }
  parts_.fences.recycle(fence);
  return passed == CUDA_SUCCESS;
} catch (...) {  // no memory of the host
  return false;
}

CUresult RoomMaker::poll_briefly(const Fence &fence, FunctionRef<bool()> enough) {
  if (fence.marks.empty()) {
    return CUDA_SUCCESS;
  }
  Context &context = *fence.marks.front().context;
  const Pin pin(context);
  const EmptyStream synchronised(pin ? context.handle : nullptr);
  return parts_.fences.poll(fence, [&] {
    {
      const CaptureExclusion exclusion(parts_.fences.captures());
      synchronised.synchronise();
    }
    return enough();
  });
}

void RoomMaker::fence_orphans(int device) noexcept try {
  std::list<OrphanFence> added(1);
  OrphanFence &one = added.front();
  one.device = device;
  one.up_to = parts_.stream_pools.orphaned(device);
  {
    const CaptureExclusion exclusion(parts_.fences.captures());
    CUresult error = CUDA_SUCCESS;
    if (!parts_.fences.by_events() || parts_.fences.take(one.fence, error, device) != FenceTracker::Taken::taken) {
      return;
    }
  }
  std::list<OrphanFence> earlier;  // the new one covers what they do
  {
    Guard guard(mutex_);
    if (orphan_fences_.size() >= kMostOrphanFences) {
      earlier = take_out(orphan_fences_, [device](const OrphanFence &each) { return each.device == device; });
    }
    orphan_fences_.splice(orphan_fences_.end(), added);
  }
  for (OrphanFence &each : earlier) {
    parts_.fences.recycle(each.fence);
  }
} catch (...) {  // no memory of the host: they go when the device is idle
}

void RoomMaker::release_orphans(const char *api, int device) noexcept try {
  if (!parts_.stream_pools.has_orphans(device)) {
    return;
  }
  std::list<OrphanFence> taken;  // so that the driver is asked without the lock
  {
    Guard guard(mutex_);
    taken.swap(orphan_fences_);
  }
  {
    const CaptureExclusion exclusion(parts_.fences.captures());
    taken.remove_if([&](OrphanFence &one) {
      if (one.device != device || parts_.fences.query(one.fence) != CUDA_SUCCESS) {
        return false;
      }
      parts_.stream_pools.release_orphans(api, device, one.up_to);
      parts_.fences.recycle(one.fence);
      return true;
    });
  }
  {
    Guard guard(mutex_);
    orphan_fences_.splice(orphan_fences_.begin(), taken);
  }
  if (!parts_.stream_pools.has_orphans(device)) {
    return;
  }
  if (const std::uint64_t orphans = parts_.stream_pools.orphaned(device); parts_.fences.is_idle(device)) {
    parts_.stream_pools.release_orphans(api, device, orphans);
  }
} catch (...) {  // no memory of the host: they stay charged
}

bool RoomMaker::give_back(const Need &need, Patience patience) noexcept {
  const bool gave = give_own_back(need, patience);
  if (patience == Patience::briefly && parts_.device_free(need.device).value_or(0) < need.bytes) {
    return ask_for_device(need) || gave;
  }
  if (gave || patience == Patience::none || need.bytes == 0) {
    return gave;
  }
  Backoff().sleep();
  return parts_.account(need.device).held_by_others() != 0;
}

bool RoomMaker::give_own_back(const Need &need, Patience patience) noexcept {
  const bool trimmed = parts_.stream_pools.trim(need.api, need.device);
  return parts_.pools.returning.give_back(need, patience) || trimmed;
}

bool RoomMaker::ask_for_device(const Need &need) noexcept {
  if (!parts_.device_free(need.device)) {
    return take_from_others(need.api, need.device, need.bytes);
  }
  const auto missing = [&](std::uint64_t usable) {
    return minus_or_zero(need.bytes, plus_or_most(parts_.device_free(need.device).value_or(0), usable));
  };
  const bool came = ask_beside(need, Of::device, parts_.pools.returning.returnable(need.device, need.asking), missing);
  if (came) {
    give_own_back(need, Patience::briefly);
  }
  return came;
}

// What is still missing after the first question is held by work, or could not go back.
bool RoomMaker::ask_beside(const Need &need, Of of, std::uint64_t own,
                           FunctionRef<std::uint64_t(std::uint64_t)> missing) noexcept {
  return (own != 0 && missing(own) != 0 && ask_others(need, of, [&] { return missing(own); })) ||
         ask_others(need, of, [&] { return missing(0); });
}

bool RoomMaker::give_away(const char *api, int device, std::uint64_t bytes) noexcept {
  const ledger::Account &account = parts_.account(device);
  const std::uint64_t before = account.charged();
  const auto missing = [&] {
    const std::uint64_t given = minus_or_zero(before, account.charged());
    return minus_or_zero(bytes, given);
  };
  parts_.async_pools.collect(device);
  parts_.stream_pools.trim_by(api, device, missing);
  if (missing() != 0 && parts_.async_pools.release_retained(device)) {
    parts_.stream_pools.trim_by(api, device, missing);
  }
  if (missing() != 0) {
    parts_.pools.returning.give_back({api, device, missing()}, Patience::none);
  }
  return account.charged() < before;
}

std::uint64_t RoomMaker::own_reach(const Need &need) noexcept {
  return parts_.pools.returning.returnable(need.device, need.asking) + parts_.pending.bytes(need.device) +
         parts_.stream_pools.idle(need.device);
}

std::uint64_t RoomMaker::lacking(const ledger::Account &account, const Need &need, std::uint64_t own) {
  const std::uint64_t left = account.group_available();
  return minus_or_zero(need.bytes, plus_or_most(left, own));
}

bool RoomMaker::make_room(const Need &need, Patience patience) noexcept {
  const ledger::Account &account = parts_.account(need.device);
  // Other threads and processes may take the memory before this thread reserves it, and free some again.
  for (Retries retries; retries.allow();) {
    const std::uint64_t before = account.charged();
    if (make_own_room(need, patience)) {
      return true;
    }
    const std::uint64_t own = own_reach(need);
    if (patience != Patience::briefly || account.left_of_limit() + own < need.bytes) {
      return false;
    }
    if (!comes_from_others(need, own) && account.charged() == before) {
      break;
    }
  }
  return wait_for_members(need);
}

bool RoomMaker::comes_from_others(const Need &need, std::uint64_t own) noexcept {
  const ledger::Account &account = parts_.account(need.device);
  const auto missing = [&](std::uint64_t usable) { return lacking(account, need, usable); };
  return missing(0) != 0 ? ask_beside(need, Of::limits, own, missing) : account.left_of_limit() >= need.bytes;
}

bool RoomMaker::wait_for_members(const Need &need) noexcept {
  ledger::Account &account = parts_.account(need.device);
  const auto fits = [&](std::uint64_t own) {  // in addition to what this process uses
    const std::uint64_t most = std::min(account.limit(), account.group_limit());
    const std::uint64_t used = minus_or_zero(account.charged(), own);
    return need.bytes <= minus_or_zero(most, used);
  };
  if (parts_.options.wait_ns == 0 || !fits(own_reach(need)) || parts_.fences.captures().is_run_here()) {
    return false;
  }
  const std::uint64_t start = now_ns();
  const std::uint64_t end = (need.begun_ns != 0 ? need.begun_ns : start) + parts_.options.wait_ns;
  const std::uint64_t before = account.available();
  std::uint64_t reminded_ns = 0;
  bool served = false;
  account.show_waiting(need.bytes);
  for (Backoff backoff; !served && now_ns() < end;) {
    const std::uint64_t own = own_reach(need);
    if (!fits(own)) {
      break;
    }
    if (account.group_available() >= need.bytes) {  // others may take it before the caller reserves it: it comes again
      served = account.left_of_limit() >= need.bytes;
      break;
    }
    const std::uint64_t missing = lacking(account, need, own);
    if (const std::uint64_t now = now_ns(); now - reminded_ns > kRemindNs) {
      if (missing != 0) {
        account.want(missing, Of::limits);
      }
      account.reclaim_from_dead();
      reminded_ns = now;
    }
    backoff.sleep();
    served = account.available() >= need.bytes || (missing == 0 && make_own_room(need, Patience::none));
  }
  account.show_waiting(0);
  record_wait(need, "members", start, before);
  return served;
}

bool RoomMaker::take_from_others(const char *api, int device, std::uint64_t bytes) noexcept {
  const ledger::Account &account = parts_.account(device);
  const std::uint64_t before = account.held_by_others();
  const std::uint64_t most = std::min(bytes, account.surplus());
  const auto missing = [&] {
    const std::uint64_t came = minus_or_zero(before, account.held_by_others());
    return minus_or_zero(most, came);
  };
  return most != 0 && (ask_others({api, device, most}, Of::device, missing) || missing() < most);
}

bool RoomMaker::ask_others(const Need &need, Of of, FunctionRef<std::uint64_t()> missing) noexcept try {
  ledger::Account &account = parts_.account(need.device);
  std::uint64_t lacking = missing();
  IdleNeighbours::Members idle = account.idle_members(of);  // before they give
  // Memory that moves while the members are read may be in no figure. Only two equal readings show that they hold too
  // little.
  for (const std::uint64_t begun = now_ns(); IdleNeighbours::bytes_of(idle) < lacking;) {
    const std::uint64_t lacking_before = std::exchange(lacking, missing());
    const IdleNeighbours::Members idle_before = std::exchange(idle, account.idle_members(of));
    if ((lacking == lacking_before && idle == idle_before) || now_ns() - begun >= kAskNs) {
      return false;
    }
  }
  if (lacking == 0) {
    return true;
  }
  account.want(lacking, of);
  const IdleNeighbours::Members asked = neighbours_.willing(idle);
  events::explain(events::Level::debug, "device ", need.device, ": ", lacking, " bytes are lacking; ", asked.size(),
                  " other processes are asked for ", IdleNeighbours::bytes_of(asked), " idle bytes");
  if (IdleNeighbours::bytes_of(asked) < lacking || parts_.fences.captures().is_run_here()) {
    return false;
  }
  const std::uint64_t start = now_ns();
  const std::uint64_t before = account.available();
  bool served = false;
  std::uint64_t least = lacking;
  std::uint64_t asked_ns = start;
  std::uint64_t looked_ns = start;
  std::uint64_t came_ns = start;
  // On a busy machine an answer takes longer, and others may take all that comes meanwhile.
  const auto expects = [&](std::uint64_t now) {
    if (now - came_ns >= kAskNs &&
        (IdleNeighbours::are_giving(asked) ||
         (now - start < kAskActiveNs && IdleNeighbours::have_acted(asked, account.idle_members(of))))) {
      came_ns = now;
    }
    return now - came_ns < kAskNs && now - start < kAskAtMostNs;
  };
  for (std::uint64_t now = start; !served && expects(now); now = now_ns()) {
    Backoff(kAskStepNs).sleep();
    if (now - looked_ns > kLookForDeadNs) {
      account.reclaim_from_dead();  // a member that died has answered, too
      looked_ns = now;
    }
    const std::uint64_t still_lacking = missing();
    served = still_lacking == 0;
    if (still_lacking < least) {
      least = still_lacking;
      came_ns = now;
    }
    if (!served && now - asked_ns > kAskAgainNs) {
      account.want(still_lacking, of);
      asked_ns = now;
    }
  }
  if (!served) {
    neighbours_.note_answers(account, of, asked);
  }
  record_wait(need, "members", start, before);
  return served;
} catch (...) {  // no memory of the host to list them
  return false;
}

std::uint64_t RoomMaker::within_reach(int device) noexcept {
  const std::uint64_t left =
      std::min(parts_.account(device).available(), parts_.device_free(device).value_or(UINT64_MAX));
  const std::uint64_t bytes = own_reach({nullptr, device, 0});
  return plus_or_most(left, bytes);
}

void RoomMaker::record_wait(const Need &need, const char *how, std::uint64_t start_ns,
                            std::uint64_t available_before) noexcept {
  const std::uint64_t waited = now_ns() - start_ns;
  const ledger::Account &account = parts_.account(need.device);
  const std::uint64_t available = account.available();
  if (waited >= kFenceNs) {
    // A group's limit ends with the last member that states it.
    const bool is_limited = std::min(account.limit(), account.group_limit()) < ledger::kMostHeld;
    const std::uint64_t gained = is_limited ? minus_or_zero(available, available_before) : need.bytes;
    parts_.journal.record(events::Wait{need.device, need.api, how, 0, gained, waited, CUDA_SUCCESS});
  }
}

bool RoomMaker::make_own_room(const Need &need, Patience patience) noexcept try {
  const int device = need.device;
  const ledger::Account &account = parts_.account(device);
  const auto enough = [&] { return account.available() >= need.bytes; };
  if (enough() || (parts_.pending.poll(device) && enough())) {
    return true;
  }
  release_orphans(need.api, device);
  if (enough()) {
    return true;
  }
  // The driver's pools keep what was freed in stream order until the stream reaches the free, and longer.
  if (parts_.stream_pools.trim(need.api, device) && enough()) {
    return true;
  }
  // Nothing is disturbed or waited for if that cannot suffice.
  parts_.pools.returning.clean(device);
  const std::uint64_t held = parts_.pools.returning.returnable(device, need.asking);
  const std::uint64_t pending = parts_.pending.bytes(device);
  const std::uint64_t idle = parts_.stream_pools.idle(device);
  if (need.bytes > account.limit() || account.available() + held + pending + idle < need.bytes) {
    return false;
  }
  if (patience == Patience::briefly && pending > 0) {
    const std::uint64_t start = now_ns();
    const std::uint64_t before = account.available();
    const bool released = parts_.pending.flush(device);
    record_wait(need, "event", start, before);
    if (released && enough()) {
      return true;
    }
  }
  if (patience == Patience::briefly && idle > 0) {
    const std::uint64_t orphans = parts_.stream_pools.orphaned(device);
    const std::uint64_t freed = parts_.stream_pools.order_mark(device);
    const std::uint64_t start = now_ns();
    const std::uint64_t before = account.available();
    if (wait_for_work(device, [&] { return parts_.stream_pools.trim(need.api, device) && enough(); })) {
      parts_.stream_pools.release_orphans(need.api, device, orphans);
      parts_.stream_pools.trim(need.api, device);
      parts_.stream_pools.note_passed(device, freed);
    }
    record_wait(need, "poll", start, before);
    if (enough()) {
      return true;
    }
  }
  // Slabs go back only if that suffices: otherwise the pool would have to take them again.
  return account.available() + held >= need.bytes && give_back(need, patience) && enough();
} catch (...) {
  return false;
}

}  // namespace ration::policy
