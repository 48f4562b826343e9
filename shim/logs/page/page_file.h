// Writes the file of a page: an HTML document that loads nothing from a network. Layer: logs. Threads: one.
#pragma once

#include <string>

namespace ration::logs {

enum class PageOf { report, difference };

// Why `-o FILE` cannot be used; empty if it can be used.
std::string problem_of_page(const std::string &file);

// Replaces `file` with the page for the document `json`. Prints a line that names `verb` and says that this was done,
// or why not. Returns an exit status.
// Design: design/log.md#report-pages
int write_page(const std::string &verb, const std::string &file, PageOf of, const std::string &json);

}  // namespace ration::logs
