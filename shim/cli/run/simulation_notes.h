// Notes that processes under a simulated driver leave for `ration run --sim` if they request something that only a real
// driver offers. Layer: cli.
#pragma once

#include <string>

namespace ration::cli {

// Creates the folder for the notes in the run's folder. Empty if it could not be created.
std::string make_notes_folder(const std::string &folder);

// Says that NVIDIA's runtime does not work in these processes, and what to do instead. Empty if there is no note.
std::string unsupported_runtime(const std::string &notes);

}  // namespace ration::cli
