#include "logs/page/page.h"

#include <string_view>

namespace ration::logs {
namespace {

// The files in web/ and dygraphs, put together by assemble.py: what precedes the document, and what follows it.
constexpr std::string_view kPageParts[] = {
#include "page_parts.inc"
};

}  // namespace

std::string page_html(const std::string &json) {
  std::string page(kPageParts[0]);
  page.reserve(page.size() + json.size() + json.size() / 8 + kPageParts[1].size());
  for (const char each : json) {
    // No text can end the element that holds the document, nor begin a comment in it.
    if (each == '<') {
      page += "\\u003c";
    } else {
      page += each;
    }
  }
  page += kPageParts[1];
  return page;
}

}  // namespace ration::logs
