#include "policy/calls/room_for_driver.h"

#include "policy/contexts/any_context.h"

namespace ration::policy {

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
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    record(api, device, bytes);
  }
  return result;
}

void RoomForDriver::record(const char *api, int device, std::uint64_t bytes) noexcept try {
  ask_in_context_of(contexts_, device,
                    [&] { admission_.record_oom(api, bytes, bytes, device, events::Reason::device, nullptr); });
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
    account.want(excess);
  }
}

}  // namespace ration::policy
