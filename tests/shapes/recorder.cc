#include "shapes/recorder.h"

#include <stdexcept>

namespace ration::shapes {
namespace {

// A double free is an error of the shape, which the builder detects.
void demand(const char *wrong) {
  if (wrong != nullptr) throw std::logic_error(wrong);
}

}  // namespace

Recorder::Id Recorder::allocate(std::uint64_t bytes) {
  auto id = static_cast<Id>(live_.size());
  if (spare_.empty()) {
    live_.push_back(bytes);
  } else {
    id = spare_.back();
    spare_.pop_back();
    live_[id] = bytes;
  }
  demand(trace_.allocate(id, bytes));
  return id;
}

void Recorder::free(Id id) {
  demand(trace_.free(id));
  live_[id] = 0;
  spare_.push_back(id);
}

}  // namespace ration::shapes
