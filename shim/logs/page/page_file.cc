#include "logs/page/page_file.h"

#include <string_view>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "config/values/quotes.h"
#include "logs/output/whole_file.h"

namespace ration::logs {
namespace {

// The files in web/ and dygraphs, as assemble.py joins them: for each page the text before the document and the text
// after it.
constexpr std::string_view kPageParts[] = {
#include "page_parts.inc"
};

std::string page_html(PageOf of, const std::string &json) {
  const std::size_t first = of == PageOf::report ? 0 : 2;
  const std::string_view rest = kPageParts[first + 1];
  std::string page(kPageParts[first]);
  page.reserve(page.size() + json.size() + json.size() / 8 + rest.size());
  for (const char each : json) {
    // Escapes <, so that no text ends the element that holds the document, or begins a comment in it.
    if (each == '<') {
      page += "\\u003c";
    } else {
      page += each;
    }
  }
  page += rest;
  return page;
}

}  // namespace

std::string problem_of_page(const std::string &file) {
  return file.ends_with(".html") || file.ends_with(".htm")
             ? ""
             : "-o " + config::shown(file) +
                   ": a page is a file that ends in .html or .htm; write, for example, run.html";
}

int write_page(const std::string &verb, const std::string &file, PageOf of, const std::string &json) {
  const std::string problem = replace_file(file, page_html(of, json));
  if (!problem.empty()) {
    cli::log_error(verb + ": cannot write " + config::in_quotes(file) + ": " + problem);
    return cli::kOurError;
  }
  cli::log_line("wrote " + config::printable(file) + ": open it in a browser");
  return 0;
}

}  // namespace ration::logs
