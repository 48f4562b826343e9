// A memory snapshot of PyTorch, for pytorch.org/memory_viz and torch/cuda/_memory_viz.py.
//
// In this format every block must lie in a segment. Slabs are segments. A block outside of slabs gets a segment of its
// own: it belongs to the driver, or it lies in granules, and the log does not say where those are mapped.
#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "logs/convert/converter.h"
#include "logs/convert/pickle_text.h"
#include "logs/history/live_blocks.h"
#include "logs/stacks/stack_table.h"

namespace ration::logs {
namespace {

constexpr std::size_t kKept = 1U << 20;  // bytes of a device's events that are kept in memory
constexpr std::uint64_t kNsOfOneUs = 1000;
constexpr std::size_t kMostDevices = 1024;

// The events of one device. The pickle lists devices one after another, so each device's events are collected in a
// file.
struct DeviceTrace {
  explicit DeviceTrace(std::uint32_t &next) : text(next), file(std::tmpfile(), &std::fclose) {
    if (file == nullptr) {
      throw std::runtime_error("no temporary file can be created");
    }
    text.list();
  }
  void save() {
    std::string &bytes = text.text();
    if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
      throw std::runtime_error("a temporary file cannot be written");
    }
    bytes.clear();
  }
  PickleText text;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file;
  std::unordered_map<std::uint64_t, std::uint32_t> frames;  // by stack: number of its frames in the pickle
};

struct TorchSegment {
  std::size_t device = 0;
  std::uint64_t bytes = 0, stream = 0;
  std::map<std::uint64_t, const LiveBlock *> blocks;  // by address
};

class TorchSnapshot : public Converter {
 public:
  explicit TorchSnapshot(std::ostream &out) : out_(out) {}

  void add(const Record &record) override {
    stacks_.add(record);
    switch (record.type) {
      case Record::Type::meta:
        start_us_ = record.number("start_unix_ns") / kNsOfOneUs;
        for (std::size_t i = record.list("devices").size(); i > 0; --i) {
          trace_of(i - 1);
        }
        break;
      case Record::Type::alloc:
      case Record::Type::free:
        blocks_.add(record);
        if (const LiveBlock *ended = blocks_.ended(); ended != nullptr && ended->is_charged) {
          end_block(*ended, record);
        }
        if (const LiveBlock *begun = blocks_.begun(); begun != nullptr && begun->is_charged) {
          begin_block(*begun, record);
        }
        break;
      case Record::Type::slab_alloc:
        begin_slab(record);
        break;
      case Record::Type::slab_free:
        end_slab(record);
        break;
      case Record::Type::oom:
        refusal(record);
        break;
      default:
        break;
    }
  }

  void finish() override {
    PickleText text(next_);
    text.text() = "\x80\x02";
    text.begin_pairs();
    text.word("device_traces");
    text.list();
    for (DeviceTrace &trace : traces_) {
      trace.save();
      flush(text);
      copy(trace.file.get());
      text.append();
    }
    text.word("segments");
    text.list();
    for (const auto &[address, segment] : segments_at_end()) {
      write_segment(text, address, segment);
      text.append();
    }
    text.end_pairs();
    text.text() += '.';
    flush(text);
  }

 private:
  using Traces = std::deque<DeviceTrace>;

  void flush(PickleText &text) {
    out_ << text.text();
    text.text().clear();
  }

  void copy(std::FILE *file) {
    std::string bytes(kKept, '\0');
    std::rewind(file);
    for (std::size_t read = 0; (read = std::fread(bytes.data(), 1, bytes.size(), file)) != 0;) {
      out_.write(bytes.data(), static_cast<std::streamsize>(read));
    }
    if (std::ferror(file) != 0) {
      throw std::runtime_error("a temporary file cannot be read");
    }
  }

  DeviceTrace &trace_of(std::size_t device) {
    if (device >= kMostDevices) {
      throw std::runtime_error("the log names device " + std::to_string(device));
    }
    while (traces_.size() <= device) {
      traces_.emplace_back(next_);
    }
    return traces_[device];
  }

  void write_frames(PickleText &text, std::unordered_map<std::uint64_t, std::uint32_t> &known, std::uint64_t stack) {
    if (const auto found = known.find(stack); found != known.end()) {
      text.recall(found->second);
      return;
    }
    text.list();
    for (const StackFrame &frame : stacks_.frames(stack)) {
      text.begin_pairs();
      text.word("filename");
      text.word(config::printable(frame.file.empty() ? frame.library : frame.file));
      text.pair("line", std::uint64_t{frame.line});
      text.word("name");
      text.word(config::printable(frame.function));
      text.end_pairs();
      text.append();
    }
    known.emplace(stack, text.remember());
  }

  // Writes an event. It has an address or, if `address` is nullopt, the free memory of the device instead.
  void event(const Record &record, std::size_t device, const char *action, std::optional<std::uint64_t> address,
             std::uint64_t bytes, std::uint64_t stream, std::uint64_t stack) {
    DeviceTrace &trace = trace_of(device);
    PickleText &text = trace.text;
    text.begin_pairs();
    text.word("action");
    text.word(action);
    if (address) {
      text.pair("addr", *address);
    } else {
      text.pair("device_free", record.number("device_free"));
    }
    text.pair("size", bytes);
    text.pair("stream", stream);
    text.pair("time_us", start_us_ + record.number("ts") / kNsOfOneUs);
    text.word("frames");
    write_frames(text, trace.frames, stack);
    text.end_pairs();
    text.append();
    if (text.text().size() > kKept) {
      trace.save();
    }
  }

  bool is_in_slab(const LiveBlock &block) const {
    const auto slab = slabs_.find(block.slab);
    const std::uint64_t address = blocks_.unique_address(block);
    return slab != slabs_.end() && address >= slab->second.first &&
           address + block.bytes <= slab->second.first + slab->second.second.bytes;
  }

  void begin_block(const LiveBlock &block, const Record &record) {
    const std::uint64_t address = blocks_.unique_address(block);
    if (!is_in_slab(block)) {
      event(record, block.device, "segment_alloc", address, block.bytes, block.stream, block.stack);
    }
    event(record, block.device, "alloc", address, block.bytes, block.stream, block.stack);
  }

  void end_block(const LiveBlock &block, const Record &record) {
    const std::uint64_t address = blocks_.unique_address(block);
    for (const char *action : {"free_requested", "free_completed"}) {
      event(record, block.device, action, address, block.bytes, block.stream, 0);
    }
    if (!is_in_slab(block)) {
      event(record, block.device, "segment_free", address, block.bytes, block.stream, 0);
    }
  }

  // Only real slabs become segments: granules have no addresses, and address ranges have no memory.
  void begin_slab(const Record &record) {
    if (record.text("backend") != "cuMemAlloc_v2") {
      return;
    }
    const std::uint64_t address = number_of_hex(record.text("addr"));
    slabs_[record.number("slab")] = {address, {record.device(), record.number("size"), 0, {}}};
    event(record, record.device(), "segment_alloc", address, record.number("size"), 0, 0);
  }

  void end_slab(const Record &record) {
    if (slabs_.erase(record.number("slab")) != 0) {
      event(record, record.device(), "segment_free", number_of_hex(record.text("addr")), record.number("size"), 0, 0);
    }
  }

  void refusal(const Record &record) {
    event(record, record.device(), "oom", std::nullopt, record.number("req"), 0, record.number("stack"));
  }

  std::map<std::uint64_t, TorchSegment> segments_at_end() const {
    std::map<std::uint64_t, TorchSegment> segments;
    for (const auto &[number, slab] : slabs_) {
      segments[slab.first] = slab.second;
    }
    blocks_.each([&](const LiveBlock &block) {
      if (!block.is_charged) {
        return;
      }
      const std::uint64_t address = blocks_.unique_address(block);
      if (is_in_slab(block)) {
        segments[slabs_.at(block.slab).first].blocks[address] = &block;
      } else {
        segments[address] = {block.device, block.bytes, block.stream, {{address, &block}}};
      }
    });
    return segments;
  }

  void write_block(PickleText &text, std::uint64_t address, std::uint64_t bytes, const LiveBlock *block) {
    text.begin_pairs();
    text.pair("address", address);
    text.pair("size", bytes);
    text.pair("requested_size", block != nullptr ? std::min(block->requested, bytes) : 0);
    text.word("state");
    text.word(block != nullptr ? "active_allocated" : "inactive");
    text.word("frames");
    write_frames(text, frames_at_end_, block != nullptr ? block->stack : 0);
    text.end_pairs();
    text.append();
  }

  // Writes the blocks of a segment. They must follow one another without gaps, so inactive blocks fill these.
  void write_segment(PickleText &text, std::uint64_t address, const TorchSegment &segment) {
    std::uint64_t used = 0;
    std::uint64_t requested = 0;
    text.begin_pairs();
    text.word("blocks");
    text.list();
    std::uint64_t at = address;
    for (const auto &[begin, block] : segment.blocks) {
      if (begin < at) {
        continue;  // inside the previous block: the log was tampered with
      }
      if (begin > at) {
        write_block(text, at, begin - at, nullptr);
      }
      write_block(text, begin, block->bytes, block);
      at = begin + block->bytes;
      used += block->bytes;
      requested += std::min(block->requested, block->bytes);
    }
    if (at < address + segment.bytes) {
      write_block(text, at, address + segment.bytes - at, nullptr);
    }
    text.pair("device", std::uint64_t{segment.device});
    text.pair("address", address);
    text.pair("total_size", segment.bytes);
    text.pair("allocated_size", used);
    text.pair("active_size", used);
    text.pair("requested_size", requested);
    text.pair("stream", segment.stream);
    text.word("segment_type");
    text.word("large");
    text.word("is_expandable");
    text.truth(false);
    text.word("frames");
    text.list();
    text.end_pairs();
    if (text.text().size() > kKept) {
      flush(text);
    }
  }

  std::ostream &out_;
  StackTable stacks_;
  LiveBlocks<NoNote> blocks_;
  std::map<std::uint64_t, std::pair<std::uint64_t, TorchSegment>> slabs_;  // by number: the slab's address and segment
  std::uint32_t next_ = 0;                                                 // the next number for a value of the pickle
  Traces traces_;                                                          // by device
  std::unordered_map<std::uint64_t, std::uint32_t> frames_at_end_;
  std::uint64_t start_us_ = 0;
};

}  // namespace

std::unique_ptr<Converter> torch_snapshot(std::ostream &out) {
  return std::make_unique<TorchSnapshot>(out);
}

}  // namespace ration::logs
