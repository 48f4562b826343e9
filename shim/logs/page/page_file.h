// The file of a page: a document in HTML that asks nothing of a network. Layer: logs. Threads: one.
#pragma once

#include <string>

namespace ration::logs {

enum class PageOf { report, difference };

// What is wrong with `-o FILE`; empty: nothing.
std::string problem_of_page(const std::string &file);

// Replaces the file by the page with this document in it, and says so or why not in the name of `verb`. Returns an
// exit status.
// Design: design/log.md#report-pages
int write_page(const std::string &verb, const std::string &file, PageOf of, const std::string &json);

}  // namespace ration::logs
