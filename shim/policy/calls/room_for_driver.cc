#include "policy/calls/room_for_driver.h"

#include "policy/calls/call_parts.h"

namespace ration::policy {
namespace {

// How much others are asked for first if it is not known how much the call takes. After that they are asked for as much
// again as was asked for so far. A context of an H100 takes 524 MiB.
constexpr std::uint64_t kFirstWish = std::uint64_t{128} << 20;

bool give_back(const CallParts &parts, const Room::Need &need, Room::Patience patience) noexcept {
  const bool retained = parts.async_pools.release_retained(need.device);
  return parts.room.give_back(need, patience) || retained;
}

void record(const CallParts &parts, const Room::Need &need) noexcept try {
  parts.admission.record_oom(need.api, need.bytes, need.bytes, need.device, events::Reason::device, nullptr);
} catch (...) {  // out of memory of the host: no record
}

}  // namespace

CUresult try_with_room(const CallParts &parts, const Room::Need &need, Room::Patience patience, DriverCall call) {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (need.bytes != 0 && give_back(parts, need, patience)) {
    result = call();
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY && give_back(parts, {need.api, need.device, 0}, patience)) {
    result = call();
  }
  for (std::uint64_t wish = kFirstWish, asked = 0;
       result == CUDA_ERROR_OUT_OF_MEMORY && parts.room.take_from_others(need.api, need.device, wish);) {
    result = call();
    asked += wish;
    wish = asked;
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    record(parts, need);
  }
  return result;
}

void return_excess(const CallParts &parts, const char *api, int device) noexcept {
  ledger::Account &account = parts.account(device);
  if (account.excess() != 0) {
    parts.async_pools.release_retained(device);
  }
  if (const std::uint64_t excess = account.excess(); excess != 0) {
    parts.room.give_back({api, device, excess}, Room::Patience::none);
  }
  if (const std::uint64_t excess = account.excess(); excess != 0) {
    account.want(excess, ledger::Account::Of::limits);
  }
}

}  // namespace ration::policy
