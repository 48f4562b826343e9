#include "config/foreign.h"

#include <algorithm>

#include "config/foreign_values.h"
#include "config/problem.h"
#include "config/settings.h"
#include "config/wording.h"

namespace ration::config {

namespace {

constexpr std::string_view kDeviceLimit = "CUDA_DEVICE_MEMORY_LIMIT";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

class ForeignReader {
 public:
  ForeignReader(const char *const *environment, std::string_view framework, bool limit_malformed, Settings &settings,
                std::vector<Problem> &problems)
      : environment_(environment),
        framework_(framework),
        limits_hold_(limit_malformed || settings.origin_of("limit") == nullptr),
        settings_(settings),
        problems_(problems) {}

  void read() {
    if (!framework_.empty()) {
      leave_to_framework();
    } else {
      read_preallocate();
      read_fractions();
      read_allocators();
      read_growth();
      read_unified_memory();
      read_async_preallocate();
    }
    read_limits();
  }

 private:
  // An empty one is unset, as JAX has it, and as ours are.
  std::optional<std::string_view> value_of(std::string_view variable) const {
    for (const char *const *entry = environment_; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (text.size() > variable.size() + 1 && text.substr(0, variable.size()) == variable &&
          text[variable.size()] == '=') {
        return text.substr(variable.size() + 1);
      }
    }
    return std::nullopt;
  }

  void settle(std::string_view variable, std::string_view value, Standing standing, std::string reason) {
    settings_.foreign.push_back({std::string(variable), std::string(value), standing, std::move(reason)});
  }

  // `tell` where whoever set it would otherwise believe that it holds.
  void ignore(std::string_view variable, std::string_view value, std::string why, bool tell) {
    if (tell) {
      problems_.push_back(problem_at(variable, shown(variable) + "=" + shown(value), why, "; it is ignored", false));
    }
    settle(variable, value, Standing::kIgnored, std::move(why));
  }

  // Whether `key` is this variable's to say. Then it has been recorded as said.
  bool takes(std::string_view key, std::string text, std::string_view variable, std::string_view value) {
    if (const Origin *stronger = settings_.origin_of(key)) {
      settle(variable, value, Standing::kOverridden, stronger->written() + " stands above it");
      return false;
    }
    std::string reason = std::string(key) + " = " + text;
    record(key, std::move(text), variable, value);
    settle(variable, value, Standing::kHonoured, std::move(reason));
    return true;
  }

  void record(std::string_view key, std::string text, std::string_view variable, std::string_view value) {
    settings_.origins.push_back(
        {std::string(key), std::move(text), Source::kForeign, std::string(variable) + "=" + std::string(value), false});
  }

  void leave_to_framework() {
    for (const std::string_view variable :
         {"XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION",
          "XLA_PYTHON_CLIENT_ALLOCATOR", "TF_GPU_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_FORCE_UNIFIED_MEMORY",
          "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC"}) {
      if (const auto value = value_of(variable)) {
        settle(variable, *value, Standing::kLeft, std::string(framework_) + ", which reads it itself");
      }
    }
    // It takes what it wants in one piece, by these variables or by its own rules; two such pieces do not fit.
    if (settings_.origin_of("preallocate") == nullptr) {
      settings_.preallocate = false;
      settings_.origins.push_back({"preallocate", "false", Source::kForeign, std::string(framework_), false});
    }
  }

  void read_preallocate() {
    constexpr std::string_view kVariable = "XLA_PYTHON_CLIENT_PREALLOCATE";
    if (const auto value = value_of(kVariable)) {
      const bool on = *value != "false" && *value != "False" && *value != "0";
      if (takes("preallocate", on ? "true" : "false", kVariable, *value)) {
        settings_.preallocate = on;
      }
      may_reserve_ = on;
    }
  }

  void read_fractions() {
    const auto now = value_of("XLA_CLIENT_MEM_FRACTION");
    const auto old = value_of("XLA_PYTHON_CLIENT_MEM_FRACTION");
    const std::string both = now && old ? "XLA_CLIENT_MEM_FRACTION and XLA_PYTHON_CLIENT_MEM_FRACTION are both set, "
                                          "which JAX refuses; unset one"
                                        : "";
    if (now) {
      read_fraction("XLA_CLIENT_MEM_FRACTION", *now, both);
    }
    if (old) {
      read_fraction("XLA_PYTHON_CLIENT_MEM_FRACTION", *old, both);
    }
  }

  void read_fraction(std::string_view variable, std::string_view value, const std::string &both) {
    const auto read = parse_mem_fraction(value);
    const MemFraction *fraction = std::get_if<MemFraction>(&read);
    LimitMap items;
    if (fraction != nullptr) {
      items.emplace_back().size = fraction->limit;
    }
    const std::string wrong = fraction == nullptr ? std::get<std::string>(read) : both;
    limit(variable, value, std::move(items), wrong);
    if (!wrong.empty() || settings_.foreign.back().standing != Standing::kHonoured) {
      return;
    }
    if (fraction->start && settings_.origin_of("preallocate") == nullptr) {
      record("preallocate", fraction->start->text(), variable, value);
      settings_.preallocate = *fraction->start;
    }
    if (fraction->oversubscribes && settings_.origin_of("managed") == nullptr) {
      record("managed", "count", variable, value);
      settings_.managed = Managed::kCount;
    }
  }

  void read_allocators() {
    constexpr std::string_view kVariable = "XLA_PYTHON_CLIENT_ALLOCATOR";
    if (const auto value = value_of(kVariable)) {
      read_xla_allocator(kVariable, *value, lower(*value));
    }
    constexpr std::string_view kTf = "TF_GPU_ALLOCATOR";
    if (const auto value = value_of(kTf)) {
      if (*value != "cuda_malloc_async") {
        ignore(kTf, *value, "only cuda_malloc_async says something here", false);
      } else if (takes("mode", "async", kTf, *value)) {
        settings_.mode = Mode::kAsync;
      }
    }
  }

  void read_xla_allocator(std::string_view variable, std::string_view value, std::string_view name) {
    if (name == "vmm") {
      if (takes("backing", "vmm", variable, value)) {
        settings_.backing = Backing::kVmm;
      }
    } else if (name == "platform") {
      if (takes("mode", "direct", variable, value)) {
        settings_.mode = Mode::kDirect;
      }
    } else if (name == "default" || name == "bfc") {
      if (takes("mode", "pool", variable, value)) {
        settings_.mode = Mode::kPool;
      }
    } else if (name != "cuda_async") {
      ignore(variable, value, "it is none of default, platform, bfc, cuda_async, vmm", true);
    } else if (takes("mode", "async", variable, value)) {
      settings_.mode = Mode::kAsync;
      // Unless told otherwise JAX has this allocator take its whole pool, whatever TensorFlow's variable says.
      if (may_reserve_ && settings_.origin_of("async_preallocate") == nullptr) {
        record("async_preallocate", "-1", variable, value);
        settings_.async_preallocate = true;
      }
    }
  }

  void read_growth() {
    constexpr std::string_view kVariable = "TF_FORCE_GPU_ALLOW_GROWTH";
    if (const auto value = value_of(kVariable)) {
      if (*value != "true" && *value != "false") {
        ignore(kVariable, *value, "it must be true or false, in lower case", true);
      } else if (takes("preallocate", *value == "true" ? "false" : "true", kVariable, *value)) {
        settings_.preallocate = *value == "false";
      }
    }
  }

  void read_unified_memory() {
    constexpr std::string_view kVariable = "TF_FORCE_UNIFIED_MEMORY";
    if (const auto value = value_of(kVariable)) {
      const std::optional<bool> on = parse_tf_switch(*value);
      if (!on) {
        ignore(kVariable, *value, "it must be true, false, 1 or 0", true);
      } else if (!*on) {
        ignore(kVariable, *value, "that is the default", false);
      } else if (takes("managed", "count", kVariable, *value)) {
        settings_.managed = Managed::kCount;
      }
    }
  }

  void read_async_preallocate() {
    constexpr std::string_view kVariable = "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC";
    const auto value = value_of(kVariable);
    if (!value) {
      return;
    }
    const std::optional<std::int64_t> number = parse_integer(*value);
    if (!number) {
      ignore(kVariable, *value, "it must be a number of bytes, -1 or 0", true);
    } else if (*number < -1) {
      ignore(kVariable, *value, "no such amount can be allocated", true);
    } else if (takes("async_preallocate", std::to_string(*number), kVariable, *value)) {
      if (*number > 0) {
        settings_.async_preallocate = Size::of_bytes(static_cast<std::uint64_t>(*number));
      } else {
        settings_.async_preallocate = *number == -1;
      }
    }
  }

  void read_limits() {
    constexpr std::string_view kPlain = "GPU_MEMORY_LIMIT";
    if (const auto value = value_of(kPlain)) {
      const auto read = parse_plain_bytes(*value);
      const Size *size = std::get_if<Size>(&read);
      limit_everywhere(kPlain, *value, size, size == nullptr ? std::get<std::string>(read) : "");
    }
    for (const char *const *entry = environment_; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const std::size_t equals = text.find('=');
      if (text.substr(0, kDeviceLimit.size()) == kDeviceLimit && equals != std::string_view::npos &&
          equals + 1 < text.size()) {
        read_device_limit(text.substr(0, equals), text.substr(equals + 1));
      }
    }
    constexpr std::string_view kPinned = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
    if (const auto value = value_of(kPinned)) {
      LimitMap items;
      const std::string wrong = parse_pinned_limit(*value, items);
      limit(kPinned, *value, std::move(items), wrong);
    }
  }

  void read_device_limit(std::string_view variable, std::string_view value) {
    const std::string_view behind = variable.substr(kDeviceLimit.size());
    const std::string_view index = behind.substr(std::min<std::size_t>(behind.size(), 1));
    const bool for_all = behind.empty();
    if (!for_all && (behind.front() != '_' || index.empty() || index.size() > 5 ||
                     index.find_first_not_of("0123456789") != std::string_view::npos)) {
      return;  // no variable of the field
    }
    const auto read = parse_device_limit(value);
    if (const std::string *wrong = std::get_if<std::string>(&read)) {
      limit(variable, value, {}, *wrong);
      return;
    }
    const std::optional<Size> &size = std::get<std::optional<Size>>(read);
    if (!size) {
      ignore(variable, value, "0 is no limit there", false);
    } else if (for_all) {
      limit_everywhere(variable, value, &*size, "");
    } else {
      LimitMap items(1);
      items[0].size = *size;
      items[0].ordinal = std::stoi(std::string(index));
      items[0].name = std::string(index);
      limit(variable, value, std::move(items), "");
    }
  }

  void limit_everywhere(std::string_view variable, std::string_view value, const Size *size, const std::string &wrong) {
    LimitMap items;
    if (size != nullptr) {
      items.emplace_back().size = *size;
    }
    limit(variable, value, std::move(items), wrong);
  }

  // All limits of the field hold together, and so the smallest.
  void limit(std::string_view variable, std::string_view value, LimitMap items, const std::string &wrong) {
    if (!limits_hold_) {
      settle(variable, value, Standing::kOverridden, settings_.origin_of("limit")->written() + " stands above it");
      return;
    }
    const std::string stated = shown(variable) + "=" + shown(value);
    std::string text;
    for (LimitItem &item : items) {
      item.stated = stated;
      text += text.empty() ? "" : ",";
      text += (item.name.empty() ? "" : item.name + "=") + item.size.text();
    }
    settings_.limit.insert(settings_.limit.end(), items.begin(), items.end());
    record("limit", wrong.empty() ? text : std::string(value), variable, value);
    if (wrong.empty()) {
      settle(variable, value, Standing::kHonoured, "limit = " + text);
      return;
    }
    settings_.limit_in_doubt = true;
    problems_.push_back(problem_at(variable, stated, wrong, kStrictestHolds, false));
    settle(variable, value, Standing::kRefused, wrong);
  }

  const char *const *environment_;
  std::string_view framework_;
  bool limits_hold_;
  bool may_reserve_ = true;  // JAX's default
  Settings &settings_;
  std::vector<Problem> &problems_;
};

}  // namespace

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kHonoured:
      return "honoured";
    case Standing::kOverridden:
      return "overridden";
    case Standing::kLeft:
      return "left";
    case Standing::kIgnored:
      return "ignored";
    case Standing::kRefused:
      return "refused";
  }
  return "ignored";
}

void hear_foreign(const char *const *environment, std::string_view framework, bool limit_malformed, Settings &settings,
                  std::vector<Problem> &problems) {
  ForeignReader(environment, framework, limit_malformed, settings, problems).read();
}

}  // namespace ration::config
