// Whole screens, compared with the files in frames/. RATION_WRITE_FRAMES=1 writes them anew: look at what has changed.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "busy_usage.h"
#include "catch.h"
#include "cli/base/text_table.h"
#include "cli/usage/top_frame.h"
#include "cli/usage/usage_tables.h"

using namespace ration;
using namespace ration::cli;

namespace {

std::string as_text(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines) {
    text += line + "\n";
  }
  return text;
}

void compare(const std::string &name, const std::string &text) {
  const std::string path = std::string(RATION_FRAMES) + "/" + name;
  if (std::getenv("RATION_WRITE_FRAMES") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ostringstream wanted;
  wanted << std::ifstream(path).rdbuf();
  CHECK(text == wanted.str());
}

// After a minute in which the first device filled.
TopState after_a_minute(bool is_unicode) {
  TopState state;
  state.is_unicode = is_unicode;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Usage before = busy_usage();
    for (DeviceRow &device : before.devices) {
      device.reserved = device.gpu == 0 ? device.reserved * i / 60 : device.reserved;
    }
    state.history.add(before);
  }
  return state;
}

void compare_frame(std::size_t width, std::size_t height, bool is_unicode) {
  const Frame frame = frame_of(busy_usage(), after_a_minute(is_unicode), height, width);
  REQUIRE(frame.lines.size() == height);
  for (const std::string &line : frame.lines) {
    CHECK(width_of(line) <= width);
  }
  compare(std::to_string(width) + "x" + std::to_string(height) + ".txt", as_text(frame.lines));
}

}  // namespace

TEST_CASE("the screen of 60 columns and 10 lines") {
  compare_frame(60, 10, false);
}

TEST_CASE("the screen of 80 columns and 24 lines") {
  compare_frame(80, 24, false);
}

TEST_CASE("the screen of 120 columns and 40 lines, with UTF-8") {
  compare_frame(120, 40, true);
}

TEST_CASE("the screen of 200 columns and 60 lines, with UTF-8") {
  compare_frame(200, 60, true);
}

TEST_CASE("the help at 60 columns and 20 lines") {
  TopState state;
  handle_key('?', state);
  compare("help.txt", as_text(frame_of(busy_usage(), state, 20, 60).lines));
}

TEST_CASE("the tables of ps at 60, 80 and 120 columns") {
  for (const std::size_t width : std::vector<std::size_t>{60, 80, 120}) {
    compare("ps-" + std::to_string(width) + ".txt", as_text(all_tables(busy_usage(), width)));
  }
}
