// `ration convert`: converts a log into the format of another tool. Layer: cli.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "cli/base/exit_status.h"
#include "cli/base/log.h"
#include "cli/base/text_table.h"
#include "cli/base/verbs.h"
#include "config/values/option_parsers.h"
#include "config/values/quotes.h"
#include "logs/convert/converter.h"
#include "logs/history/read_history.h"
#include "logs/output/output_file.h"

namespace ration::cli {
namespace {

struct LogFormat {
  const char *name;
  bool is_text;
  const char *choice;  // the option that chooses what it counts, if it has one
  const char *choices;
  std::unique_ptr<logs::Converter> (*make)(std::ostream &, logs::Amount);
};

template <auto make>
std::unique_ptr<logs::Converter> without_choice(std::ostream &out, logs::Amount) {
  return make(out);
}

constexpr std::array<LogFormat, 6> kFormats = {
    {{"chrome", true, "", "", &without_choice<&logs::chrome_trace>},
     {"pprof", false, "--at", "end peak", &logs::pprof_profile},
     {"collapsed", true, "--of", "peak total leaked", &logs::collapsed_stacks},
     {"torch", false, "", "", &without_choice<&logs::torch_snapshot>},
     {"rmm-csv", true, "", "", &without_choice<&logs::rmm_csv>},
     {"csv", true, "", "", &without_choice<&logs::csv_table>}}};

std::optional<logs::Amount> amount_named(const std::string &option, const std::string &name) {
  if (option == "--at") {
    return name == "end"    ? std::optional(logs::Amount::kLeaked)
           : name == "peak" ? std::optional(logs::Amount::kPeak)
                            : std::nullopt;
  }
  return name == "peak"     ? std::optional(logs::Amount::kPeak)
         : name == "total"  ? std::optional(logs::Amount::kTotal)
         : name == "leaked" ? std::optional(logs::Amount::kLeaked)
                            : std::nullopt;
}

int wrong_choice(const std::string &option, const std::string &given, std::string_view choices) {
  return usage_error("convert: " + option + " " + config::shown(given) + ": " + config::error_in_choice(given, choices),
                     kUsageError);
}

int unwritable(const std::string &path, const logs::OutputFile &file) {
  return usage_error("convert: cannot write " + config::in_quotes(path) + ": " + file.problem(), kOurError);
}

}  // namespace

int run_verb(const ConvertRequest &request) {
  const LogFormat *format = nullptr;
  std::string names;
  for (const LogFormat &each : kFormats) {
    format = request.to == each.name ? &each : format;
    names += names.empty() ? "" : " ";
    names += each.name;
  }
  if (format == nullptr) {
    return wrong_choice("--to", request.to, names);
  }
  const std::string choice = format->choice;
  for (const auto &[option, given] : {std::pair("--at", &request.at), std::pair("--of", &request.of)}) {
    if (*given && choice != option) {
      return usage_error(std::string("convert: ") + option + " is not for --to " + request.to, kUsageError);
    }
  }
  const std::string chosen = choice == "--at" ? request.at.value_or("end") : request.of.value_or("peak");
  const std::optional<logs::Amount> amount = amount_named(choice, chosen);
  if (!amount) {
    return wrong_choice(choice, chosen, format->choices);
  }
  const std::optional<std::string> output = request.output == "-" ? std::nullopt : request.output;
  if (!format->is_text && !output && isatty(STDOUT_FILENO) != 0) {
    return usage_error("convert: --to " + request.to + " is not for a terminal: name a file with -o", kUsageError);
  }
  logs::OutputFile out(output);
  if (!out.problem().empty()) {
    return unwritable(*output, out);
  }
  const std::unique_ptr<logs::Converter> converter = format->make(out.stream(), *amount);
  std::uint64_t missing = 0;
  const auto convert = [&](const logs::Record &record) {
    missing += record.missing();
    converter->add(record);
  };
  if (!logs::has_records(logs::read_records("convert", request.log, convert))) {
    return kUnreadable;
  }
  converter->finish();
  if (!output ? !flush_stdout() : !out.commit()) {
    return !output ? kOurError : unwritable(*output, out);
  }
  if (missing != 0) {
    log_line("convert: " + config::printable(request.log) + " lacks " + counted(missing, "record", "records") +
             ", and so does what is written");
  }
  return 0;
}

}  // namespace ration::cli
