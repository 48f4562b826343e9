#include "config/values/size.h"

#include <clocale>

#include "catch.h"

using ration::config::parse_amount;
using ration::config::parse_bytes;
using ration::config::parse_size;
using ration::config::Size;

namespace {

constexpr std::uint64_t kKiB = 1ull << 10;
constexpr std::uint64_t kMiB = 1ull << 20;
constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint64_t kTiB = 1ull << 40;
constexpr std::uint64_t kSixteenGiB = 16 * kGiB;

struct Accepted {
  std::string_view text;
  std::uint64_t bytes;  // on a device of 16 GiB
};

const Accepted kAccepted[] = {
    {"1048576", kMiB},
    {"01048576", kMiB},
    {"8589934592", 8 * kGiB},
    {"18446744073709551615", 18446744073709551615ull},
    {"1024k", kMiB},
    {"1m", kMiB},
    {"3g", 3 * kGiB},
    {"3G", 3 * kGiB},
    {"1t", kTiB},
    {"16777215t", 16777215 * kTiB},
    {"2048KiB", 2048 * kKiB},
    {"2048Ki", 2048 * kKiB},
    {"3Mi", 3072 * kKiB},
    {"1.5Gi", 1536 * 1024 * kKiB},
    {"1Ti", 1024ull * 1024 * 1024 * kKiB},
    {"1MiB", kMiB},
    {"8GiB", 8 * kGiB},
    {"2TiB", 2 * kTiB},
    {"2000KB", 2000000},
    {"2MB", 2000000},
    {"8GB", 8000000000},
    {"1TB", 1000000000000},
    {"8gi", 8 * kGiB},
    {"8GI", 8 * kGiB},
    {"8gib", 8 * kGiB},
    {"8GIB", 8 * kGiB},
    {"8gIB", 8 * kGiB},
    {"2048kib", 2048 * kKiB},
    {"3mib", 3072 * kKiB},
    {"1tib", kTiB},
    {"8gb", 8000000000},
    {"8gB", 8000000000},
    {"2000kB", 2000000},
    {"2mb", 2000000},
    {"1tb", 1000000000000},
    {"1048576B", kMiB},
    {"8 GiB", 8 * kGiB},
    {"8 g", 8 * kGiB},
    {"8 GB", 8000000000},
    {"1.5 gib", 1536 * 1024 * kKiB},
    {"1048576 B", kMiB},
    {"40 %", 6871947673},
    {"1.5GiB", 1610612736},
    {"0.5g", kGiB / 2},
    {"1.0000000001GiB", kGiB},  // a tenth of a byte is truncated
    {"100%", kSixteenGiB},
    {"100.0%", kSixteenGiB},
    {"40%", 6871947673},
    {"12.5%", 2 * kGiB},
    {"0.01%", 1717986},
    {"1.0", kSixteenGiB},
    {"1.000000000000000000000", kSixteenGiB},
    {"0.4", 6871947673},
    {".4", 6871947673},
    {"0.400", 6871947673},
    {"0.999999999999999999", kSixteenGiB - 1},
    {"0.333333333333333333", 5726623061},
};

struct Refused {
  std::string_view text;
  std::string_view says;  // the part of the sentence that names the mistake or what was meant
};

const Refused kRefused[] = {
    {"", "empty"},
    {"1", "bare 1"},
    {"0", "the smallest is 1MiB"},
    {"0.0", "above 0"},
    {"0%", "above 0"},
    {"101%", "at most 100%"},
    {"100.0001%", "at most 100%"},
    {"1.1", "as 1.5GiB"},
    {"16.0", "as 1.5GiB"},
    {"-1", "negative"},
    {"-8GiB", "negative"},
    {"+8GiB", "sign"},
    {"5", "5MiB, 5GiB or 5%"},
    {"512", "512MiB"},
    {"1048575", "below the smallest size"},
    {"1023k", "1047552 bytes"},
    {"1MB", "1000000 bytes"},
    {"0.5m", "524288 bytes"},
    {"1e9", "exponents"},
    {"1E9", "exponents"},
    {"1e+9", "exponents"},
    {"0x10", "hexadecimal"},
    {"0X40000000", "hexadecimal"},
    {"8  GB", "likely meant: 8GB"},
    {" 8g ", "likely meant: 8g"},
    {"8GiB ", "likely meant: 8GiB"},
    {"8 ", "write, for example, 8GiB"},
    {"8 G iB", "likely meant: 8GiB"},
    {"0. 4", "likely meant: 0.4"},
    {"8 000 000 000", "likely meant: 8000000000"},
    {"50 % of it", "one before its unit; write, for example, 8GiB"},
    {"8Gib", "likely meant: 8GiB"},
    {"8GIb", "likely meant: 8GiB"},
    {"8Gb", "likely meant: 8GB"},
    {"8 Gb", "likely meant: 8GB"},
    {"8Mib", "likely meant: 8MiB"},
    {"1048576b", "likely meant: 1048576B"},
    {"8GiBs", "not a unit"},
    {"8P", "not a unit"},
    {"8b", "not a unit"},
    {"8bit", "not a unit"},
    {"8i", "not a unit"},
    {"8iB", "not a unit"},
    {"8GiBB", "not a unit"},
    {"8GBi", "not a unit"},
    {"8g8", "not a unit"},
    {"8g%", "not a unit"},
    {"50%%", "not a unit"},
    {"GiB", "does not begin with a number"},
    {"%", "does not begin with a number"},
    {".", "does not begin with a number"},
    {"max", "does not begin with a number"},
    {"nan", "does not begin with a number"},
    {"inf", "does not begin with a number"},
    {"1.", "digit must follow"},
    {"1.GiB", "digit must follow"},
    {"1.2.3", "one decimal point"},
    {"0,4", "a decimal point"},
    {"1,000,000", "no digit grouping"},
    {"1_000_000", "no digit grouping"},
    {"0.1234567890123456789", "18 decimals"},
    {"0.12345678901234567%", "16 decimals"},
    {"18446744073709551616", "64 bits"},
    {"16777216t", "64 bits"},
    {"17179869184g", "64 bits"},
    {"18446744073709551615k", "64 bits"},
    {"340282366920938463463374607431768211456", "64 bits"},
    {"340282366920938463463374607431769260032", "64 bits"},  // 2^128 + 1 MiB
    {"\xd9\xa8", "plain ASCII"},                             // an Arabic eight
    {"8GiB\n", "control characters"},
    {"\t8GiB", "control characters"},
    {"8GiB\r", "control characters"},
    {"\"8GiB\"", "quotation marks of its own"},
    {"'8GiB'", "quotation marks of its own"},
    {"8\xc2\xa0GiB", "plain ASCII"},  // a no-break space
    {"\xff\xfe", "plain ASCII"},
};

}  // namespace

TEST_CASE("a size is parsed exactly to the byte") {
  for (const Accepted &row : kAccepted) {
    INFO(row.text);
    const auto size = parse_size(row.text);
    REQUIRE(std::holds_alternative<Size>(size));
    CHECK(std::get<Size>(size).bytes_of(kSixteenGiB) == row.bytes);
  }
}

TEST_CASE("a malformed size is refused with what was likely meant") {
  for (const Refused &row : kRefused) {
    INFO(row.text);
    const auto size = parse_size(row.text);
    REQUIRE(std::holds_alternative<std::string>(size));
    const std::string &sentence = std::get<std::string>(size);
    INFO(sentence);
    CHECK(sentence.find(row.says) != std::string::npos);
    CHECK(sentence.find('\n') == std::string::npos);
    CHECK(sentence.size() < 200);
  }
}

TEST_CASE("what is no limit may be any number of bytes") {
  CHECK(std::get<Size>(parse_amount("0", "")) == Size::of_bytes(0));
  CHECK(std::get<Size>(parse_amount("512k", "")) == Size::of_bytes(512 * kKiB));
  CHECK(std::get<Size>(parse_amount("40%", "")) == std::get<Size>(parse_size("40%")));
  CHECK(std::get<std::string>(parse_amount("half", "3m")) == "it does not begin with a number; write, for example, 3m");
  CHECK(std::get<std::uint64_t>(parse_bytes("1")) == 1);
  CHECK(std::get<std::uint64_t>(parse_bytes("2 gib")) == 2 * kGiB);
  CHECK(std::get<std::string>(parse_bytes("50%")).find("a percentage has no meaning here") == 0);
  CHECK(std::get<std::string>(parse_bytes("-1")).find("a size cannot be negative; write, for example, 8GiB") == 0);
}

TEST_CASE("a NUL byte inside a size is refused") {
  CHECK(std::holds_alternative<std::string>(parse_size(std::string_view("8GiB\0", 5))));
  CHECK(std::holds_alternative<std::string>(parse_size(std::string_view("8\0GiB", 5))));
}

TEST_CASE("a size of a megabyte of digits is refused quickly and in one short line") {
  for (const char digit : {'0', '9', '.', ' ', 'g'}) {
    const auto size = parse_size("8" + std::string(1 << 20, digit) + "x");
    REQUIRE(std::holds_alternative<std::string>(size));
    CHECK(std::get<std::string>(size).size() < 300);
  }
}

TEST_CASE("leading zeros do not change a size") {
  CHECK(std::get<Size>(parse_size(std::string(5000, '0') + "8GiB")) == Size::of_bytes(8 * kGiB));
}

TEST_CASE("the locale does not change how sizes are parsed") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char *name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) {
      CHECK(std::get<Size>(parse_size("0.4")).bytes_of(kSixteenGiB) == 6871947673);
      CHECK(std::holds_alternative<std::string>(parse_size("0,4")));
    }
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST_CASE("a share is truncated to a byte on devices of any size") {
  const Size third = std::get<Size>(parse_size("0.333333333333333333"));
  CHECK(third.is_share());
  CHECK(third.bytes_of(0) == 0);
  CHECK(third.bytes_of(1) == 0);
  CHECK(third.bytes_of(3) == 0);  // 0.999999999999999999 of a byte
  CHECK(third.bytes_of(10) == 3);
  CHECK(std::get<Size>(parse_size("0.999999999999999999")).bytes_of(~0ull) == 18446744073709551596ull);
  CHECK(std::get<Size>(parse_size("100%")).bytes_of(~0ull) == ~0ull);
}

TEST_CASE("sizes with different spellings of one value are equal") {
  CHECK(std::get<Size>(parse_size("40%")) == std::get<Size>(parse_size("0.4")));
  CHECK(std::get<Size>(parse_size("1024MiB")) == std::get<Size>(parse_size("1g")));
  CHECK_FALSE(std::get<Size>(parse_size("1GB")) == std::get<Size>(parse_size("1GiB")));
}

TEST_CASE("the text of a size is the shortest exact one") {
  CHECK(Size::of_bytes(8 * kGiB).text() == "8GiB");
  CHECK(Size::of_bytes(1536 * kMiB).text() == "1536MiB");
  CHECK(Size::of_bytes(6871947673).text() == "6871947673");
  CHECK(Size::of_bytes(0).text() == "0");
  CHECK(std::get<Size>(parse_size("0.4")).text() == "40%");
  CHECK(std::get<Size>(parse_size("0.125")).text() == "12.5%");
  CHECK(std::get<Size>(parse_size("0.000000000000000001")).text() == "0.0000000000000001%");
}

TEST_CASE("bytes are shown to the nearest, in three digits but for whole KiB and MiB") {
  using ration::config::show_bytes;
  using ration::config::show_exact_bytes;
  CHECK(show_bytes(0) == "0B");
  CHECK(show_bytes(1023) == "1023B");
  CHECK(show_bytes(1024) == "1KiB");
  CHECK(show_bytes(1025) == "1.00KiB");
  CHECK(show_bytes(2 * kMiB) == "2MiB");
  CHECK(show_bytes(1845248) == "1.76MiB");
  CHECK(show_bytes(52690944) == "50.3MiB");
  CHECK(show_bytes(99 * kMiB + 1) == "99.0MiB");
  CHECK(show_bytes(512 * kMiB + 1) == "512MiB");
  CHECK(show_bytes(kMiB - 1) == "1.00MiB");
  CHECK(show_bytes(1000 * kMiB) == "1000MiB");
  CHECK(show_bytes(1024 * kMiB) == "1.00GiB");
  CHECK(show_bytes(6871947673) == "6.40GiB");
  CHECK(show_bytes(24 * 1024 * kMiB - 1) == "24.0GiB");
  CHECK(show_bytes(2700 * kMiB) == "2.64GiB");
  CHECK(show_bytes((6144 - 2700) * kMiB) == "3.36GiB");
  CHECK(show_bytes(192 * 1024 * kMiB) == "192GiB");
  CHECK(show_bytes(1023 * 1024 * kMiB) == "1023GiB");
  CHECK(show_bytes(1024 * 1024 * kMiB) == "1.00TiB");
  CHECK(show_bytes(1536ull * 1024 * 1024 * kMiB) == "1.50PiB");
  CHECK(show_bytes(~0ull) == "16.0EiB");
  CHECK(show_exact_bytes(0) == "0 bytes");
  CHECK(show_exact_bytes(1) == "1 byte");
  CHECK(show_exact_bytes(1023) == "1023 bytes");
  CHECK(show_exact_bytes(6871947673) == "6.40GiB (6871947673 bytes)");
}
