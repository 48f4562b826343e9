#include "logs/page/pool_event.h"

#include <string>

#include "logs/history/live_blocks.h"

namespace ration::logs {
namespace {

constexpr std::size_t kBuffered = 4096;

PoolEvent::Type type_in_pool(Record::Type type) {
  switch (type) {
    case Record::Type::alloc:
      return PoolEvent::Type::alloc;
    case Record::Type::free:
      return PoolEvent::Type::free;
    case Record::Type::slab_alloc:
      return PoolEvent::Type::slab_alloc;
    case Record::Type::slab_free:
      return PoolEvent::Type::slab_free;
    default:
      return PoolEvent::Type::other;
  }
}

}  // namespace

PoolEvent pool_event(const Record &record, std::uint32_t site, Names &names) {
  PoolEvent event;
  event.type = type_in_pool(record.type);
  event.seq = record.number("seq");
  event.ts_ns = record.number("ts");
  if (event.type == PoolEvent::Type::other) {
    return event;
  }
  event.device = static_cast<std::uint32_t>(record.device());
  event.address = number_of_hex(record.text("addr"));
  event.slab = record.number("slab");
  event.site = site;
  event.is_charged = record.is_charged();
  event.is_range = record.has("range");
  event.bytes = record.number(event.is_range ? "range" : "size");
  if (event.type == PoolEvent::Type::alloc || event.type == PoolEvent::Type::free) {
    event.requested = record.number("req");
    event.kind = names.number(std::string(record.text("kind")));
  } else {
    event.is_granule = record.text("backend") == "cuMemCreate";
  }
  return event;
}

EventFile::EventFile() : file_(std::tmpfile()), is_whole_(file_ != nullptr) {}

void EventFile::add(const PoolEvent &event) {
  buffer_.push_back(event);
  if (buffer_.size() == kBuffered) {
    write();
  }
}

void EventFile::write() {
  is_whole_ =
      is_whole_ && std::fwrite(buffer_.data(), sizeof(PoolEvent), buffer_.size(), file_.get()) == buffer_.size();
  buffer_.clear();
}

bool EventFile::next(PoolEvent &event) {
  if (!reads_) {
    write();
    is_whole_ = is_whole_ && std::fflush(file_.get()) == 0 && std::fseek(file_.get(), 0, SEEK_SET) == 0;
    reads_ = true;
  }
  if (at_ == buffer_.size()) {
    buffer_.resize(is_whole_ ? kBuffered : 0);
    buffer_.resize(is_whole_ ? std::fread(buffer_.data(), sizeof(PoolEvent), kBuffered, file_.get()) : 0);
    is_whole_ = is_whole_ && std::ferror(file_.get()) == 0;
    at_ = 0;
  }
  if (buffer_.empty()) {
    return false;
  }
  event = buffer_[at_++];
  return true;
}

}  // namespace ration::logs
