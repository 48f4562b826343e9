#include "logs/page/sites.h"

#include <bit>

#include "logs/history/history.h"

namespace ration::logs {

std::uint32_t Sites::add(const Record &record) {
  if (record.type != Record::Type::alloc) {
    stacks_.add(record);
    return 0;
  }
  const std::uint64_t stack = record.number("stack");
  return stack != 0 ? of_stack(stack, record) : without_stack(record);
}

std::uint32_t Sites::of_stack(std::uint64_t stack, const Record &record) {
  const auto known = by_stack_.find(stack);
  if (known != by_stack_.end()) {
    return known->second;
  }
  const std::vector<StackFrame> frames = stacks_.frames(stack);
  if (frames.empty()) {
    return without_stack(record);
  }
  has_stacks_ = true;
  Site site;
  site.caller = names_->number(stacks_.caller(stack));
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    site.path.push_back(
        {names_->number(place_of(*frame)), names_->number(frame->library), names_->number(frame->file)});
  }
  const auto number = static_cast<std::uint32_t>(all_.size());
  all_.push_back(std::move(site));
  by_stack_.emplace(stack, number);
  return number;
}

std::uint32_t Sites::without_stack(const Record &record) {
  const std::string_view kind = record.text("kind");
  const std::string_view api = record.text("api");
  std::string key(kind);
  key += '\n';
  key += api;
  key += '\n';
  key += static_cast<char>('A' + std::bit_width(record.number("req")));
  const auto [entry, is_new] = by_class_.try_emplace(std::move(key), static_cast<std::uint32_t>(all_.size()));
  if (is_new) {
    const std::uint32_t none = names_->number("");
    Site site;
    site.caller = names_->number(std::string(api));
    for (const std::string &name : {std::string(kind), std::string(api), size_class(record.number("req"))}) {
      site.path.push_back({names_->number(name), none, none});
    }
    all_.push_back(std::move(site));
  }
  return entry->second;
}

}  // namespace ration::logs
