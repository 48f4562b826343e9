#include "command_text.h"

#include <array>
#include <bit>

#include "backed_pool.h"
#include "pool_player.h"

namespace ration::pool {
namespace {

using Kind = Command::Kind;

constexpr std::string_view kLetters = "amfrcxyzqlsbdhwvgk";  // by kind
static_assert(kLetters.size() == static_cast<std::size_t>(kLastKind) + 1);

// Sizes that no octave expresses: 0, and those around and beyond the largest.
constexpr std::array kOddSizes = {std::uint64_t{0},       kMaximumBytes - 1,          kMaximumBytes + 1,
                                  SharedPool::kMostBytes, SharedPool::kMostBytes + 1, ~std::uint64_t{0},
                                  ~std::uint64_t{511},    ~std::uint64_t{0} / 2 + 1};
constexpr std::uint64_t kFirstOdd = 49;  // octaves 0 to 48
constexpr std::uint64_t kSteps = 4096;   // of an octave

constexpr std::uint64_t kBudget = std::uint64_t{1} << 49;  // of the upstream: two of the largest slabs

bool is_size(Kind kind) {
  return kind == Kind::kAllocate || kind == Kind::kAddSlab;
}

std::uint64_t size_of(std::uint64_t number) {
  const std::uint64_t octave = number / kSteps;
  const std::uint64_t step = number % kSteps;
  if (octave < kFirstOdd) {
    const std::uint64_t base = std::uint64_t{1} << octave;
    return base + (octave < 12 ? step >> (12 - octave) : step << (octave - 12));
  }
  return octave < kFirstOdd + kOddSizes.size() ? kOddSizes[octave - kFirstOdd] : step;
}

std::uint64_t number_of(std::uint64_t size) {
  for (std::size_t odd = 0; odd < kOddSizes.size(); ++odd) {
    if (size == kOddSizes[odd]) return (kFirstOdd + odd) * kSteps;
  }
  const auto octave = static_cast<std::uint64_t>(std::bit_width(size) - 1);
  const std::uint64_t above = size - (std::uint64_t{1} << octave);
  return octave * kSteps + (octave < 12 ? above << (12 - octave) : above >> (octave - 12));
}

char character(std::uint64_t six_bits) {
  return static_cast<char>(six_bits < 32 ? '@' + six_bits : six_bits < 48 ? '`' + (six_bits - 32) : six_bits);
}

}  // namespace

Play play_of(std::span<const std::uint8_t> bytes) {
  Play play{!bytes.empty() && bytes[0] % 2 == 's' % 2, {}};
  for (std::size_t at = 1; at + 4 <= bytes.size();) {
    const std::uint8_t letter = bytes[at];
    if (letter <= ' ') {
      ++at;
      continue;
    }
    const std::size_t known = kLetters.find(static_cast<char>(letter));
    const auto kind = static_cast<Kind>(known != std::string_view::npos ? known : letter % kLetters.size());
    std::uint64_t number = 0;
    for (std::size_t next = at + 1; next < at + 4; ++next) number = number * 64 + bytes[next] % 64;
    play.commands.push_back({kind, is_size(kind) ? size_of(number) : number});
    at += 4;
  }
  return play;
}

std::string text_of(const Command &command) {
  const std::uint64_t number = is_size(command.kind) ? number_of(command.number) : command.number;
  return {kLetters[static_cast<std::size_t>(command.kind)], character(number / 4096 % 64), character(number / 64 % 64),
          character(number % 64)};
}

std::string outcome_of(const Play &play) {
  const auto run = [&play](auto &pool, PoolModel &model) {
    PoolPlayer player(pool, model);
    const std::string wrong = player.play(play.commands);
    return wrong.empty() ? player.finish() : wrong;
  };
  PoolModel model;
  if (play.shared) {
    BackedPool pool(model, kBudget);
    return run(pool, model);
  }
  Pool pool;
  return run(pool, model);
}

}  // namespace ration::pool
