// XLA_* and TF_*, as JAX, XLA and TensorFlow read them. Layer: config.
#include <algorithm>

#include "config/foreign_values.h"
#include "config/foreign_words.h"

namespace ration::config {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

constexpr std::string_view kPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE";

class FrameworkReader {
 public:
  explicit FrameworkReader(ForeignWords &words) : words_(words), settings_(words.settings()) {}

  // In the order in which of two that say one setting the first holds.
  void read() {
    may_reserve_ = is_preallocating(words_.value_of(kPreallocate));
    read_fractions();
    read_preallocate();
    read_allocators();
    read_growth();
    read_unified_memory();
    read_async_preallocate();
    read_deterministic();
  }

 private:
  static bool is_preallocating(std::optional<std::string_view> value) {
    return !value || (*value != "false" && *value != "False" && *value != "0");
  }

  void read_preallocate() {
    const auto value = words_.value_of(kPreallocate);
    if (!value) {
      return;
    }
    const Origin *said = settings_.origin_of("preallocate");
    if (may_reserve_ && said != nullptr && said->source == Source::kForeign) {  // how much, a fraction has said
      words_.settle(kPreallocate, *value, Standing::kHonoured, "preallocate = " + said->value);
    } else if (words_.takes("preallocate", may_reserve_ ? "true" : "false", kPreallocate, *value)) {
      settings_.preallocate = may_reserve_;
    }
  }

  void read_fractions() {
    const auto now = words_.value_of("XLA_CLIENT_MEM_FRACTION");
    const auto old = words_.value_of("XLA_PYTHON_CLIENT_MEM_FRACTION");
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
    if (!words_.limit(variable, value, std::move(items), wrong)) {
      return;
    }
    if (fraction->start && may_reserve_ && !words_.is_said("preallocate")) {
      words_.record("preallocate", fraction->start->text(), variable, value);
      settings_.preallocate = *fraction->start;
    }
    if (fraction->oversubscribes && !words_.is_said("managed")) {
      words_.record("managed", "count", variable, value);
      settings_.managed = Managed::kCount;
    }
  }

  void read_allocators() {
    constexpr std::string_view kVariable = "XLA_PYTHON_CLIENT_ALLOCATOR";
    if (const auto value = words_.value_of(kVariable)) {
      read_xla_allocator(kVariable, *value, lower(*value));
    }
    constexpr std::string_view kTf = "TF_GPU_ALLOCATOR";
    if (const auto value = words_.value_of(kTf)) {
      if (*value != "cuda_malloc_async") {
        words_.ignore(kTf, *value, "only cuda_malloc_async says something here", false);
      } else if (words_.takes("mode", "async", kTf, *value)) {
        settings_.mode = Mode::kAsync;
      }
    }
  }

  void read_xla_allocator(std::string_view variable, std::string_view value, std::string_view name) {
    if (name == "vmm") {
      if (words_.takes("backing", "vmm", variable, value)) {
        settings_.backing = Backing::kVmm;
      }
    } else if (name == "platform") {
      if (words_.takes("mode", "direct", variable, value)) {
        settings_.mode = Mode::kDirect;
      }
    } else if (name == "default" || name == "bfc") {
      if (words_.takes("mode", "pool", variable, value)) {
        settings_.mode = Mode::kPool;
      }
    } else if (name != "cuda_async") {
      words_.ignore(variable, value, "it is none of default, platform, bfc, cuda_async, vmm", true);
    } else if (words_.takes("mode", "async", variable, value)) {
      settings_.mode = Mode::kAsync;
      // Unless told otherwise JAX has this allocator take its whole pool, whatever TensorFlow's variable says.
      if (may_reserve_ && !words_.is_said("async_preallocate")) {
        words_.record("async_preallocate", "-1", variable, value);
        settings_.async_preallocate = true;
      }
    }
  }

  void read_growth() {
    constexpr std::string_view kVariable = "TF_FORCE_GPU_ALLOW_GROWTH";
    if (const auto value = words_.value_of(kVariable)) {
      if (*value != "true" && *value != "false") {
        words_.ignore(kVariable, *value, "it must be true or false, in lower case", true);
      } else if (words_.takes("preallocate", *value == "true" ? "false" : "true", kVariable, *value)) {
        settings_.preallocate = *value == "false";
      }
    }
  }

  // A switch of TensorFlow's that is on; what else it says is settled.
  std::optional<std::string_view> on_switch(std::string_view variable) {
    const auto value = words_.value_of(variable);
    const std::optional<bool> on = value ? parse_tf_switch(*value) : std::nullopt;
    if (value && !on) {
      words_.ignore(variable, *value, "it must be true, false, 1 or 0", true);
    } else if (value && !*on) {
      words_.ignore(variable, *value, "that is the default", false);
    }
    return on.value_or(false) ? value : std::nullopt;
  }

  void read_unified_memory() {
    constexpr std::string_view kVariable = "TF_FORCE_UNIFIED_MEMORY";
    if (const auto value = on_switch(kVariable); value && words_.takes("managed", "count", kVariable, *value)) {
      settings_.managed = Managed::kCount;
    }
  }

  void read_deterministic() {
    constexpr std::string_view kVariable = "TF_DETERMINISTIC_ALLOCATOR";
    if (const auto value = on_switch(kVariable)) {
      settings_.deterministic_reuse = true;
      words_.settle(kVariable, *value, Standing::kHonoured, "mode async uses memory again in the program's own order");
    }
  }

  void read_async_preallocate() {
    constexpr std::string_view kVariable = "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC";
    const auto value = words_.value_of(kVariable);
    if (!value) {
      return;
    }
    const std::optional<std::int64_t> number = parse_integer(*value);
    if (!number) {
      words_.ignore(kVariable, *value, "it must be a number of bytes, -1 or 0", true);
    } else if (*number < -1) {
      words_.ignore(kVariable, *value, "no such amount can be allocated", true);
    } else if (words_.takes("async_preallocate", std::to_string(*number), kVariable, *value)) {
      if (*number > 0) {
        settings_.async_preallocate = Size::of_bytes(static_cast<std::uint64_t>(*number));
      } else {
        settings_.async_preallocate = *number == -1;
      }
    }
  }

  ForeignWords &words_;
  Settings &settings_;
  bool may_reserve_ = true;  // JAX's default
};

}  // namespace

void hear_frameworks(ForeignWords &words) {
  FrameworkReader(words).read();
}

}  // namespace ration::config
