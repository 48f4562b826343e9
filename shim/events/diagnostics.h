// Ration's lines on stderr. Layer: events (a leaf). Threads: any; one write(2) a line, no lock. Never throws.
#pragma once

#include <string_view>

namespace ration::events {

// Writes "ration: LINE". Newlines inside become spaces, so one event is one line.
void say(std::string_view line) noexcept;

}  // namespace ration::events
