// Writes the file of a page: an HTML document that loads nothing from a network. Layer: logs. Threads: one.
#pragma once

#include <string>

namespace ration::logs {

enum class PageOf { report, difference };

// Why `-o FILE` cannot be used; empty: it can.
std::string problem_of_page(const std::string &file);

// Replaces `file` by the page with the document `json`, and prints, in the name of `verb`, that it did so or why it did
// not. Returns an exit status.
// Design: design/log.md#report-pages
int write_page(const std::string &verb, const std::string &file, PageOf of, const std::string &json);

}  // namespace ration::logs
