// Collapsed stacks, which every flame graph tool reads: one line for each stack, outermost frame first, and its bytes.
#include <algorithm>
#include <map>
#include <set>

#include "cli/base/text_table.h"
#include "config/values/quotes.h"
#include "logs/convert/converter.h"

namespace ration::logs {
namespace {

// A name without the characters that separate frames and lines.
std::string frame_name(const std::string &name) {
  std::string text = config::printable(name);
  std::replace(text.begin(), text.end(), ';', ':');
  return text.empty() ? "?" : text;
}

class CollapsedStacks : public Converter {
 public:
  CollapsedStacks(std::ostream &out, Amount amount) : out_(out), amount_(amount) {}

  void add(const Record &record) override { totals_.add(record); }

  void finish() override {
    totals_.finish();
    std::set<std::size_t> devices;
    for (const auto &[place, totals] : totals_.places()) {
      devices.insert(place.device);
    }
    std::map<std::string, std::uint64_t> lines;  // two stacks may differ only in line numbers
    for (const auto &[place, totals] : totals_.places()) {
      if (totals.of(amount_).bytes != 0) {
        lines[line_of(place, devices.size() > 1)] += totals.of(amount_).bytes;
      }
    }
    for (const auto &[line, bytes] : lines) {
      out_ << line << ' ' << bytes << '\n';
    }
  }

 private:
  std::string line_of(const StackTotals::Place &place, bool with_device) {
    std::string line = with_device ? "device " + std::to_string(place.device) + ";" : "";
    const std::vector<StackFrame> frames = totals_.stacks().frames(place.stack);
    if (frames.empty()) {
      return line += frame_name(place.api);
    }
    std::for_each(frames.rbegin(), frames.rend(),
                  [&line](const StackFrame &frame) { line += frame_name(frame.function) += ";"; });
    line.pop_back();
    return line;
  }

  std::ostream &out_;
  const Amount amount_;
  StackTotals totals_;
};

}  // namespace

std::unique_ptr<Converter> collapsed_stacks(std::ostream &out, Amount amount) {
  return std::make_unique<CollapsedStacks>(out, amount);
}

}  // namespace ration::logs
