// A gzip-compressed heap profile in pprof's format (github.com/google/pprof, proto/profile.proto).
#include <zlib.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "logs/convert/converter.h"
#include "logs/convert/protobuf_message.h"

namespace ration::logs {
namespace {

// Field numbers of profile.proto.
namespace profile_field {
constexpr unsigned kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kFunction = 5, kStrings = 6, kTime = 9,
                   kDuration = 10, kPeriodType = 11, kPeriod = 12, kComment = 13, kDefaultSampleType = 14;
}  // namespace profile_field

std::string gzip(const std::string &text) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the window bits, it requests a gzip header
  constexpr int kMemory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::runtime_error("zlib cannot compress");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) {
    throw std::runtime_error("zlib cannot compress");
  }
  return out;
}

class PprofProfile : public Converter {
 public:
  PprofProfile(std::ostream &out, Amount in_use) : out_(out), in_use_(in_use) { string(""); }

  void add(const Record &record) override {
    if (record.type == Record::Type::meta) {
      profile_.number(profile_field::kTime, record.number("start_unix_ns"));
      program_ = record.text("exe");
    }
    last_ns_ = std::max(last_ns_, record.number("ts"));
    totals_.add(record);
  }

  void finish() override {
    totals_.finish();
    for (const auto &[type, unit] : {std::pair("alloc_objects", "count"), std::pair("alloc_space", "bytes"),
                                     std::pair("inuse_objects", "count"), std::pair("inuse_space", "bytes")}) {
      profile_.message(profile_field::kSampleType, value_type(type, unit));
    }
    mapping(program_);  // pprof takes the first mapping as the program
    for (const auto &[place, totals] : totals_.places()) {
      sample(place, totals);
    }
    profile_.number(profile_field::kDuration, last_ns_);
    profile_.message(profile_field::kPeriodType, value_type("space", "bytes"));
    profile_.number(profile_field::kPeriod, 1);
    profile_.number(profile_field::kComment,
                    string(in_use_ == Amount::kPeak ? "in use: at the peak of each device" : "in use: never freed"));
    profile_.number(profile_field::kDefaultSampleType, string("inuse_space"));
    for (const std::string &each : in_order_) {
      profile_.bytes(profile_field::kStrings, each);
    }
    out_ << gzip(profile_.text());
  }

 private:
  std::uint64_t string(const std::string &text) {
    const auto [found, is_new] = strings_.try_emplace(text, strings_.size());
    if (is_new) {
      in_order_.push_back(text);
    }
    return found->second;
  }

  ProtobufMessage value_type(const char *type, const char *unit) {
    ProtobufMessage message;
    message.number(1, string(type));
    message.number(2, string(unit));
    return message;
  }

  std::uint64_t mapping(const std::string &path) {
    const auto [found, is_new] = mappings_.try_emplace(path, mappings_.size() + 1);
    if (is_new) {
      ProtobufMessage message;
      message.number(1, found->second);
      message.number(5, string(config::printable(path)));
      for (const unsigned has : {7U, 8U, 9U}) {  // it has functions, file names and lines
        message.number(has, 1);
      }
      profile_.message(profile_field::kMapping, message);
    }
    return found->second;
  }

  std::uint64_t function(const std::string &name, const std::string &file) {
    const auto [found, is_new] = functions_.try_emplace({name, file}, functions_.size() + 1);
    if (is_new) {
      ProtobufMessage message;
      message.number(1, found->second);
      message.number(2, string(config::printable(name)));
      message.number(3, string(config::printable(name)));
      message.number(4, string(config::printable(file)));
      profile_.message(profile_field::kFunction, message);
    }
    return found->second;
  }

  std::uint64_t location(const StackFrame &frame) {
    const std::uint64_t code = function(frame.function, frame.file);
    // Python code is shown as a part of the program.
    const std::uint64_t file = mapping(frame.module.empty() ? program_ : frame.module);
    const auto [found, is_new] = locations_.try_emplace({code, frame.line, file}, locations_.size() + 1);
    if (is_new) {
      ProtobufMessage line;
      line.number(1, code);
      line.number(2, frame.line);
      ProtobufMessage message;
      message.number(1, found->second);
      message.number(2, file);
      message.message(4, line);
      profile_.message(profile_field::kLocation, message);
    }
    return found->second;
  }

  ProtobufMessage label(const char *key, const std::string &text) {
    ProtobufMessage message;
    message.number(1, string(key));
    message.number(2, string(config::printable(text)));
    return message;
  }

  void sample(const StackTotals::Place &place, const StackTotals::Totals &totals) {
    std::vector<StackFrame> frames = totals_.stacks().frames(place.stack);
    if (frames.empty()) {
      StackFrame &called = frames.emplace_back();
      called.function = place.api;
    }
    std::vector<std::uint64_t> locations;  // innermost first
    for (const StackFrame &frame : frames) {
      locations.push_back(location(frame));
    }
    const StackTotals::Count &in_use = totals.of(in_use_);
    ProtobufMessage message;
    message.packed(1, locations);
    message.packed(2, {totals.of(Amount::kTotal).blocks, totals.of(Amount::kTotal).bytes, in_use.blocks, in_use.bytes});
    message.message(3, label("dev", std::to_string(place.device)));
    message.message(3, label("api", place.api));
    message.message(3, label("kind", place.kind));
    profile_.message(profile_field::kSample, message);
  }

  std::ostream &out_;
  const Amount in_use_;
  StackTotals totals_;
  ProtobufMessage profile_;
  std::string program_;
  std::uint64_t last_ns_ = 0;
  std::map<std::string, std::uint64_t> strings_;
  std::vector<std::string> in_order_;
  std::map<std::string, std::uint64_t> mappings_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;
  std::map<std::tuple<std::uint64_t, unsigned, std::uint64_t>, std::uint64_t> locations_;
};

}  // namespace

std::unique_ptr<Converter> pprof_profile(std::ostream &out, Amount in_use) {
  return std::make_unique<PprofProfile>(out, in_use);
}

}  // namespace ration::logs
