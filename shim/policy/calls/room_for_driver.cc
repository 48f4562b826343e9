#include "policy/calls/room_for_driver.h"

namespace ration::policy {
namespace {

// How much others are asked for first where it is not known how much the call takes; then for as much again as was
// asked for so far. A context of an H100 takes 524 MiB.
constexpr std::uint64_t kFirstWish = std::uint64_t{128} << 20;

}  // namespace

bool RoomForDriver::give_back(const char *api, int device, std::uint64_t bytes, Room::Patience patience) noexcept {
  const bool retained = async_.release_retained(device);
  return room_.give_back({api, device, bytes}, patience) || retained;
}

CUresult RoomForDriver::try_again(const char *api, int device, std::uint64_t bytes, Room::Patience patience,
                                  DriverCall call) {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes != 0 && give_back(api, device, bytes, patience)) {
    result = call();
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY && give_back(api, device, 0, patience)) {
    result = call();
  }
  for (std::uint64_t wish = kFirstWish, asked = 0;
       result == CUDA_ERROR_OUT_OF_MEMORY && room_.take_from_others(api, device, wish);) {
    result = call();
    asked += wish;
    wish = asked;
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    record(api, device, bytes);
  }
  return result;
}

void RoomForDriver::record(const char *api, int device, std::uint64_t bytes) noexcept try {
  admission_.record_oom(api, bytes, bytes, device, events::Reason::device, nullptr);
} catch (...) {  // out of memory of the host: no record
}

void RoomForDriver::return_excess(const char *api, int device) noexcept {
  ledger::Account &account = ledger_.account(device);
  if (account.excess() != 0) {
    async_.release_retained(device);
  }
  if (const std::uint64_t excess = account.excess(); excess != 0) {
    room_.give_back({api, device, excess}, Room::Patience::none);
  }
  if (const std::uint64_t excess = account.excess(); excess != 0) {
    account.want(excess, ledger::Account::Of::limits);
  }
}

}  // namespace ration::policy
