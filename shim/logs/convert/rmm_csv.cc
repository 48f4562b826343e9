// The log format of RMM's logging_resource_adaptor, which its replay benchmark and other people's scripts read.
//
// The benchmark reads thread, size and stream as decimal numbers, and a pointer as hexadecimal. It ignores the time.
#include <cstdio>

#include "logs/convert/converter.h"
#include "logs/history/live_blocks.h"

namespace ration::logs {
namespace {

constexpr std::uint64_t kNsOfUs = 1000;
constexpr std::uint64_t kUsOfSecond = 1'000'000;
constexpr std::uint64_t kSecondsOfDay = 86'400;

class RmmCsv : public Converter {
 public:
  explicit RmmCsv(std::ostream &out) : out_(out) {}

  void add(const Record &record) override {
    switch (record.type) {
      case Record::Type::meta:
        out_ << "Thread,Time,Action,Pointer,Size,Stream\n";
        start_ns_ = record.number("start_unix_ns");
        break;
      case Record::Type::alloc:
      case Record::Type::free:
        blocks_.add(record);
        row_of(record, "free", blocks_.ended());
        row_of(record, "allocate", blocks_.begun());
        break;
      case Record::Type::oom:
        if (record.text("api") != "cuIpcGetMemHandle") {  // asks for no memory
          row(record, "allocate failure", 0, record.number("req"));
        }
        break;
      default:
        break;
    }
  }
  void finish() override {}

 private:
  void row_of(const Record &record, const char *action, const LiveBlock *block) {
    if (block != nullptr && block->is_charged) {
      row(record, action, blocks_.unique_address(*block), block->bytes);
    }
  }
  void row(const Record &record, const char *action, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t us = (start_ns_ + record.number("ts")) / kNsOfUs;
    const std::uint64_t second = us / kUsOfSecond % kSecondsOfDay;
    char text[80];
    std::snprintf(text, sizeof(text), "%02u:%02u:%02u.%06u,%s,0x%llx,", static_cast<unsigned>(second / 3600),
                  static_cast<unsigned>(second / 60 % 60), static_cast<unsigned>(second % 60),
                  static_cast<unsigned>(us % kUsOfSecond), action, static_cast<unsigned long long>(address));
    out_ << record.number("tid") << ',' << text << bytes << ',' << record.number("stream") << '\n';
  }

  std::ostream &out_;
  LiveBlocks<NoNote> blocks_;
  std::uint64_t start_ns_ = 0;
};

}  // namespace

std::unique_ptr<Converter> rmm_csv(std::ostream &out) {
  return std::make_unique<RmmCsv>(out);
}

}  // namespace ration::logs
