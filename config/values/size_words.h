/* Describes what is wrong with the text of a size, and what was likely meant: one sentence, the same in every program.
 * In C, because Slurm's plug-in, which is built outside this repository, uses it too. No locale.
 * Layer: none, includable from everywhere. Threads: pure functions. */
#ifndef RATION_SIZE_WORDS_H_
#define RATION_SIZE_WORDS_H_

#include <string.h>

#include "size_syntax.h" /* in the folder of this file */

enum { RATION_SIZE_SMALLEST = 1 << 20, RATION_SIZE_LONGEST_SHOWN = 80 };

struct RationSizeWords {
  char text[512]; /* ends with 0 */
  size_t length;
};

/* Drops what does not fit. Every sentence in this file fits. */
static inline void ration_add_part(struct RationSizeWords *words, const char *text, size_t length) {
  const size_t room = sizeof(words->text) - 1 - words->length;
  const size_t taken = length < room ? length : room;
  memcpy(words->text + words->length, text, taken);
  words->length += taken;
  words->text[words->length] = '\0';
}

static inline void ration_add(struct RationSizeWords *words, const char *text) {
  ration_add_part(words, text, strlen(text));
}

static inline void ration_add_number(struct RationSizeWords *words, uint64_t number) {
  char digits[20];
  size_t begin = sizeof(digits);
  do {
    digits[--begin] = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  ration_add_part(words, digits + begin, sizeof(digits) - begin);
}

/* REQUIRES: printable ASCII. */
static inline void ration_add_shown(struct RationSizeWords *words, const char *text, size_t length) {
  const size_t most = RATION_SIZE_LONGEST_SHOWN;
  ration_add_part(words, text, length < most ? length : most);
  if (length > most) {
    ration_add(words, "... (");
    ration_add_number(words, length);
    ration_add(words, " characters)");
  }
}

static inline void ration_add_example(struct RationSizeWords *words, const char *sentence, const char *examples) {
  ration_add(words, sentence);
  ration_add(words, "; write, for example, ");
  ration_add(words, examples);
}

/* Sets `likely` to the unit that `unit` was probably meant to be, such as GiB for Gib. Returns 0 if there is none. */
static inline int ration_likely_unit(const char *unit, size_t length, char likely[3]) {
  for (size_t i = 0; i < length && length <= 3; ++i) {
    const char c = ration_lower(unit[i]);
    likely[i] = (char)(c >= 'a' && c <= 'z' && c != 'i' ? c - 'a' + 'A' : c);
  }
  return length <= 3 && ration_unit_bytes(likely, length) != 0;
}

static inline void ration_add_wrong_unit(struct RationSizeWords *words, const char *number, size_t digits,
                                         const char *unit, size_t length) {
  const char first = ration_lower(unit[0]);
  char likely[3];
  if (first == 'e' && length > 1 && (ration_is_digit(unit[1]) || unit[1] == '+' || unit[1] == '-')) {
    ration_add(words, "exponents are not read; write the number out or with a unit, as 1GB");
  } else if (first == 'x' && digits == 1 && number[0] == '0') {
    ration_add(words, "hexadecimal is not read; write the bytes in decimal or with a unit, as 8GiB");
  } else if (first == ',' || first == '_' || first == '\'') {
    ration_add(words, "use no digit grouping, and a decimal point; write, for example, 1048576 or 0.4");
  } else if (first == '.') {
    ration_add(words, "a number has one decimal point; write, for example, 1.5GiB");
  } else {
    ration_add(words, "\"");
    ration_add_shown(words, unit, length);
    if (ration_likely_unit(unit, length, likely)) {
      ration_add(words, "\" is not a unit (its b may be a bit); likely meant: ");
      ration_add_shown(words, number, digits);
      ration_add_part(words, likely, length);
    } else {
      ration_add(words, "\" is not a unit; the units are B, k m g t, Ki Mi Gi Ti, KiB MiB GiB TiB, KB MB GB TB and %");
    }
  }
}

/* For blanks anywhere else than before the unit. */
static inline void ration_add_wrong_blanks(struct RationSizeWords *words, const char *text, size_t length,
                                           const char *examples) {
  static const char kSentence[] = "a size has no blanks but one before its unit";
  char joined[RATION_SIZE_LONGEST_SHOWN];
  size_t kept = 0;
  for (size_t i = 0; i < length && kept < sizeof(joined); ++i) {
    joined[kept] = text[i];
    kept += text[i] != ' ' ? 1 : 0;
  }
  const struct RationSizeText read = ration_read_size(joined, kept);
  if (kept < sizeof(joined) &&
      (read.kind == RATION_SIZE_SHARE || (read.kind == RATION_SIZE_BYTES && read.amount >= RATION_SIZE_SMALLEST))) {
    ration_add(words, kSentence);
    ration_add(words, "; likely meant: ");
    ration_add_part(words, joined, kept);
  } else {
    ration_add_example(words, kSentence, examples);
  }
}

/* For characters that no size contains. `unit`: the position of the unit. Returns 0, and adds nothing, if there are
 * none. */
static inline int ration_add_wrong_characters(struct RationSizeWords *words, const char *text, size_t length,
                                              size_t unit, const char *examples) {
  int has_blank = 0;
  for (size_t i = 0; i < length; ++i) {
    has_blank = has_blank || (i >= unit && text[i] == ' ');
    const unsigned char byte = (unsigned char)text[i];
    if (byte < ' ' || byte > '~') {
      ration_add_example(words,
                         byte < ' ' || byte == 0x7f ? "a size has no control characters, such as those that end lines"
                                                    : "a size is written in plain ASCII",
                         examples);
      return 1;
    }
  }
  if (length == 0) {
    ration_add_example(words, "it is empty", examples);
  } else if (text[0] == '"' || text[0] == '\'') {
    ration_add_example(words, "it has quotation marks of its own, which the shell or the file did not take off",
                       examples);
  } else if (text[0] == '-') {
    ration_add_example(words, "a size cannot be negative", examples);
  } else if (text[0] == '+') {
    ration_add_example(words, "a size has no sign", examples);
  } else if (has_blank) {
    ration_add_wrong_blanks(words, text, length, examples);
  } else {
    return 0;
  }
  return 1;
}

/* REQUIRES: `read` is the result of ration_read_size() for this text, and is not a size. */
static inline struct RationSizeWords ration_wrong_size(const char *text, size_t length, struct RationSizeText read,
                                                       const char *examples) {
  struct RationSizeWords words = {{0}, 0};
  if (ration_add_wrong_characters(&words, text, length, read.unit, examples)) {
    return words;
  }
  switch (read.kind) {
    case RATION_SIZE_NO_NUMBER:
      ration_add_example(&words, "it does not begin with a number", examples);
      break;
    case RATION_SIZE_NO_DECIMALS:
      ration_add_example(&words, "a digit must follow the decimal point", examples);
      break;
    case RATION_SIZE_LONG_NUMBER:
      ration_add_example(&words, "more than 18 decimals are not read", examples);
      break;
    case RATION_SIZE_LONG_PERCENT:
      ration_add(&words, "more than 16 decimals of a percentage are not read");
      break;
    case RATION_SIZE_TOO_LARGE:
      ration_add_example(&words, "it is more than 64 bits can hold", examples);
      break;
    case RATION_SIZE_EMPTY_SHARE:
      ration_add(&words, "a share must be above 0");
      break;
    case RATION_SIZE_ABOVE_ALL:
      ration_add(&words, text[length - 1] == '%'
                             ? "a percentage is at most 100%; write, for example, 40%"
                             : "a number with a decimal point is a share of the device, above 0 and at most 1; likely "
                               "meant: a unit after it, as 1.5GiB");
      break;
    default:
      ration_add_wrong_unit(&words, text, read.digits, text + read.unit, length - read.unit);
  }
  return words;
}

/* For a text that is a size below the smallest one. */
static inline struct RationSizeWords ration_small_size(const char *text, size_t length, uint64_t bytes,
                                                       int takes_share) {
  struct RationSizeWords words = {{0}, 0};
  size_t digits = 0;
  while (digits < length && ration_is_digit(text[digits])) {
    ++digits;
  }
  if (bytes == 0) {
    ration_add(&words, "0 is not a usable size; the smallest is 1MiB");
    return words;
  }
  if (length == 1 && text[0] == '1') {
    ration_add(&words, takes_share
                           ? "a bare 1 could be a byte, a GiB or the whole device; write 1GiB, or 100% for the whole"
                           : "a bare 1 could be a byte or a GiB; write 1GiB");
    return words;
  }
  ration_add(&words, "that is ");
  ration_add_number(&words, bytes);
  ration_add(&words, bytes == 1 ? " byte, below the smallest size, 1MiB" : " bytes, below the smallest size, 1MiB");
  /* For a value that is not part of a device's memory, such as a log's size, more than 10000 MiB is hardly meant. */
  if (digits == length && (takes_share || bytes <= 10000)) {
    const char *const between[] = {"; likely meant: ", takes_share ? ", " : " or ", " or "};
    const char *const units[] = {"MiB", "GiB", "%"};
    for (int i = 0; i < (bytes > 100 ? 1 : takes_share ? 3 : 2); ++i) {
      ration_add(&words, between[i]);
      ration_add_part(&words, text, length);
      ration_add(&words, units[i]);
    }
  }
  return words;
}

#endif
