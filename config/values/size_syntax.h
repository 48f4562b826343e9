/* Reads the text of a size, for every program here, including the simulated driver and Slurm's plug-in. In C, and in
 * one file, because that plug-in is built outside this repository. No locale, no floating point.
 * Layer: none, includable from everywhere. Threads: pure functions. */
#ifndef RATION_SIZE_SYNTAX_H_
#define RATION_SIZE_SYNTAX_H_

#include <stddef.h>
#include <stdint.h>

/* Holds a product of two 64-bit numbers exactly. */
__extension__ typedef unsigned __int128 RationWide;

enum RationSizeKind {
  RATION_SIZE_BYTES,
  RATION_SIZE_SHARE, /* of a device's memory, above 0 and at most all of it */
  /* The text is not a size: */
  RATION_SIZE_NO_NUMBER, /* it does not begin with a number */
  RATION_SIZE_NO_DECIMALS,
  RATION_SIZE_LONG_NUMBER, /* more than 18 decimals */
  RATION_SIZE_LONG_PERCENT,
  RATION_SIZE_TOO_LARGE, /* more than 64 bits can hold */
  RATION_SIZE_NO_UNIT,
  RATION_SIZE_EMPTY_SHARE,
  RATION_SIZE_ABOVE_ALL /* more than the whole device */
};

struct RationSizeText {
  enum RationSizeKind kind;
  uint64_t amount; /* bytes, rounded down; or a share: how many of `whole` parts of the device */
  uint64_t whole;  /* RATION_SIZE_SHARE: a power of ten, at most 10^18 */
  size_t digits;   /* the position at which the number ends */
  size_t unit;     /* the position at which the unit begins: `digits`, or one more after a blank */
};

enum {
  RATION_SIZE_DECIMALS = 18,         /* 10^18 is the largest power of ten in 64 bits */
  RATION_SIZE_HIGHEST_DIGIT_BIT = 87 /* of a number: multiplied by the largest unit, 2^40, it fits into 128 bits */
};

static inline int ration_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static inline char ration_lower(char c) {
  return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static inline uint64_t ration_power(uint64_t base, int exponent) {
  uint64_t power = 1;
  for (; exponent > 0; --exponent) {
    power *= base;
  }
  return power;
}

/* The bytes of a unit. No unit and B mean bytes. k m g t alone, or with i or iB, are powers of 1024; with B, powers of
 * 1000. Case does not matter, except that a b after a capital, as in Gb and Gib, is refused: it may mean bits.
 * 0: not a unit. */
static inline uint64_t ration_unit_bytes(const char *unit, size_t length) {
  static const char kLetters[] = "kmgt";
  if (length == 0 || (length == 1 && unit[0] == 'B')) {
    return 1;
  }
  int power = 0;
  while (power < 4 && kLetters[power] != ration_lower(unit[0])) {
    ++power;
  }
  const int is_binary = length > 1 && ration_lower(unit[1]) == 'i';
  const size_t end = is_binary ? 2 : 1;
  const int has_b = length == end + 1 && ration_lower(unit[end]) == 'b';
  if (power == 4 || (length != end && !has_b) || (has_b && unit[end] == 'b' && unit[0] != kLetters[power])) {
    return 0;
  }
  return ration_power(has_b && !is_binary ? 1000 : 1024, power + 1);
}

/* Returns the number at the start of `text`, multiplied by 10^*decimals, and sets `digits`. Sets `kind` only if the
 * number cannot be used. */
static inline RationWide ration_read_number(const char *text, size_t length, int *decimals, int *has_point,
                                            struct RationSizeText *size) {
  RationWide number = 0;
  size_t end = 0;
  size_t digits = 0;
  *decimals = 0;
  *has_point = 0;
  for (; end < length && (ration_is_digit(text[end]) || (text[end] == '.' && !*has_point)); ++end) {
    *has_point = *has_point || text[end] == '.';
    digits += ration_is_digit(text[end]) ? 1 : 0;
  }
  if (digits == 0) {
    size->kind = RATION_SIZE_NO_NUMBER;
    return 0;
  }
  size->digits = end;
  if (text[end - 1] == '.') {
    size->kind = RATION_SIZE_NO_DECIMALS;
    return 0;
  }
  while (*has_point && text[end - 1] == '0') { /* 0.400 is 0.4 */
    --end;
  }
  int is_decimal = 0;
  for (size_t i = 0; i < end; ++i) {
    if (text[i] == '.') {
      is_decimal = 1;
      continue;
    }
    number = number * 10 + (unsigned)(text[i] - '0');
    *decimals += is_decimal;
    if (*decimals > RATION_SIZE_DECIMALS || number >> RATION_SIZE_HIGHEST_DIGIT_BIT != 0) {
      size->kind = *decimals > RATION_SIZE_DECIMALS ? RATION_SIZE_LONG_NUMBER : RATION_SIZE_TOO_LARGE;
      return 0;
    }
  }
  return number;
}

/* Reads all of `text`: a number, at most one blank, and a unit, as in `8GiB` and `40%`. Without a unit, a number with a
 * point (`0.4`) is a share, and one without a point is a number of bytes, however small. */
static inline struct RationSizeText ration_read_size(const char *text, size_t length) {
  struct RationSizeText size = {RATION_SIZE_BYTES, 0, 0, 0, 0};
  int decimals = 0;
  int has_point = 0;
  const RationWide number = ration_read_number(text, length, &decimals, &has_point, &size);
  size.unit = size.digits;
  if (size.kind != RATION_SIZE_BYTES) {
    return size;
  }
  if (length - size.unit > 1 && text[size.unit] == ' ') {
    ++size.unit;
  }
  const size_t unit_length = length - size.unit;
  const int is_percent = unit_length == 1 && text[size.unit] == '%';
  if (is_percent || (unit_length == 0 && has_point)) {
    decimals += is_percent ? 2 : 0;
    if (decimals > RATION_SIZE_DECIMALS) {
      size.kind = RATION_SIZE_LONG_PERCENT;
      return size;
    }
    size.whole = ration_power(10, decimals);
    size.kind = number == 0 ? RATION_SIZE_EMPTY_SHARE : number > size.whole ? RATION_SIZE_ABOVE_ALL : RATION_SIZE_SHARE;
    size.amount = size.kind == RATION_SIZE_SHARE ? (uint64_t)number : 0;
    return size;
  }
  const uint64_t factor = ration_unit_bytes(text + size.unit, unit_length);
  if (factor == 0) {
    size.kind = RATION_SIZE_NO_UNIT;
    return size;
  }
  const RationWide bytes = number * factor / ration_power(10, decimals);
  size.kind = bytes > UINT64_MAX ? RATION_SIZE_TOO_LARGE : RATION_SIZE_BYTES;
  size.amount = (uint64_t)bytes;
  return size;
}

#endif
