#include "logs/page/caller_stack.h"

#include <algorithm>

namespace ration::logs {

void CallerStack::add(std::uint64_t ts_ns, const Level &level) {
  if (points_.empty() || points_.back().bytes != level.bytes) {
    points_.push_back({ts_ns, level.bytes});
  }
}

void CallerStack::leave(std::uint64_t ts_ns) {
  if (before_) {
    add(bucket_ * width_ns_, *before_);
  }
  add(highest_.ts_ns, highest_);
  if (after_) {
    add(after_->ts_ns, *after_);
  }
  add(ts_ns, now_);
}

void CallerStack::enter(std::uint64_t bucket) {
  bucket_ = bucket;
  highest_ = now_;
  highest_.ts_ns = bucket * width_ns_;
  before_.reset();
  after_.reset();
}

void CallerStack::change(std::uint64_t ts_ns, std::size_t rank, std::uint64_t by, bool is_less) {
  if (ts_ns / width_ns_ != bucket_) {
    leave((bucket_ + 1) * width_ns_);
    enter(ts_ns / width_ns_);
  }
  now_.ts_ns = ts_ns;
  now_.bytes[rank] = is_less ? now_.bytes[rank] - by : now_.bytes[rank] + by;
  now_.total = is_less ? now_.total - by : now_.total + by;
  if (now_.total > highest_.total) {
    const Level &least = after_ ? *after_ : highest_;
    before_ = before_ && before_->total < least.total ? before_ : least;
    highest_ = now_;
    after_.reset();
  } else if (!after_) {
    after_ = now_;
  } else if (now_.total < after_->total) {
    after_->bytes = now_.bytes;
    after_->total = now_.total;
  }
}

void CallerStack::finish(std::uint64_t ts_ns) {
  leave(std::min(ts_ns, (bucket_ + 1) * width_ns_));
}

}  // namespace ration::logs
