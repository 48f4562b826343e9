// Compares 16 numbers at once, with one result bit for each: without branches, random numbers cause no mispredictions.
// Layer: pool, a leaf (standard library only). Threads: values, no shared state.
// Uses SSE2, which every x86-64 processor has; other architectures use plain loops that the compiler may vectorise.
#pragma once

#include <array>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ration::pool::lanes {

inline constexpr std::uint32_t kLanes = 16;

template <class Number>
struct alignas(16) Row : std::array<Number, kLanes> {};

#if defined(__SSE2__)

inline constexpr std::uint32_t kVector = 4;  // in lanes

inline __m128i load(const void *lanes) {
  return _mm_load_si128(static_cast<const __m128i *>(lanes));
}
// Rows are written only in whole vectors: a load that spans a narrower store stalls until that store has left the
// core's store buffer.
inline void store(void *lanes, __m128i value) {
  _mm_store_si128(static_cast<__m128i *>(lanes), value);
}
inline __m128i choose(__m128i mask, __m128i yes, __m128i no) {
  return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

// A vector with all bits set in one lane.
inline __m128i only(std::uint32_t lane) {
  static constexpr std::array<std::int32_t, 7> kOne = {0, 0, 0, -1, 0, 0, 0};
  return _mm_loadu_si128(reinterpret_cast<const __m128i *>(kOne.data() + 3 - lane));
}
template <class Number>
inline void put(Number *row, std::uint32_t slot, Number value) {
  Number *vector = row + (slot & ~(kVector - 1));
  const __m128i all = _mm_set1_epi32(static_cast<std::int32_t>(value));
  store(vector, choose(only(slot % kVector), all, load(vector)));
}

// Like put(), for one byte of 16.
inline void put_byte(std::uint8_t *bytes, std::uint32_t at, std::uint8_t value) {
  static constexpr std::array<std::uint8_t, 31> kOne = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF};
  const __m128i mask = _mm_loadu_si128(reinterpret_cast<const __m128i *>(kOne.data() + 15 - at));
  store(bytes, choose(mask, _mm_set1_epi8(static_cast<char>(value)), load(bytes)));
}
inline std::uint32_t equal_bytes(const std::uint8_t *bytes, std::uint8_t value) {
  return static_cast<std::uint32_t>(
      _mm_movemask_epi8(_mm_cmpeq_epi8(load(bytes), _mm_set1_epi8(static_cast<char>(value)))));
}

// The sign bits of `compare(vector)` for each lane of a row.
template <class Number, class Compare>
inline std::uint32_t mask_of(const Number *row, Compare compare) {
  const __m128i low = _mm_packs_epi32(compare(load(row)), compare(load(row + kVector)));
  const __m128i high = _mm_packs_epi32(compare(load(row + 2 * kVector)), compare(load(row + 3 * kVector)));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

// REQUIRES: least > INT32_MIN.
inline std::uint32_t at_least(const std::int32_t *row, std::int32_t least) {
  const __m128i below = _mm_set1_epi32(least - 1);
  return mask_of(row, [below](__m128i lane) { return _mm_cmpgt_epi32(lane, below); });
}

inline std::int32_t largest(const std::int32_t *row) {
  const auto larger = [](__m128i a, __m128i b) { return choose(_mm_cmpgt_epi32(a, b), a, b); };
  __m128i best =
      larger(larger(load(row), load(row + kVector)), larger(load(row + 2 * kVector), load(row + 3 * kVector)));
  best = larger(best, _mm_shuffle_epi32(best, _MM_SHUFFLE(1, 0, 3, 2)));
  best = larger(best, _mm_shuffle_epi32(best, _MM_SHUFFLE(2, 3, 0, 1)));
  return _mm_cvtsi128_si32(best);
}

#else

template <class Number>
inline void put(Number *row, std::uint32_t slot, Number value) {
  row[slot] = value;
}

inline void put_byte(std::uint8_t *bytes, std::uint32_t at, std::uint8_t value) {
  bytes[at] = value;
}
inline std::uint32_t equal_bytes(const std::uint8_t *bytes, std::uint8_t value) {
  std::uint32_t mask = 0;
  for (std::uint32_t at = 0; at < 16; ++at) mask |= std::uint32_t{bytes[at] == value} << at;
  return mask;
}

inline std::uint32_t at_least(const std::int32_t *row, std::int32_t least) {
  std::uint32_t mask = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) mask |= std::uint32_t{row[lane] >= least} << lane;
  return mask;
}

inline std::int32_t largest(const std::int32_t *row) {
  std::int32_t best = row[0];
  for (std::uint32_t lane = 1; lane < kLanes; ++lane) best = row[lane] > best ? row[lane] : best;
  return best;
}

#endif

}  // namespace ration::pool::lanes
