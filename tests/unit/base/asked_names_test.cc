// The names that a program asks the driver for: which are unknown, and the bounded record of them.
#include "base/asked_names.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"

using namespace ration;

namespace {

std::vector<std::string> kept(const RationNames &names) {
  std::vector<std::string> texts;
  for (unsigned place = 0; place < RATION_NAMES_KEPT; ++place) {
    if (const char *name = name_at(names, place)) {
      texts.emplace_back(name);
    }
  }
  return texts;
}

}  // namespace

TEST_CASE("every function of the catalogue is known, under its export and the name that it is asked for by") {
  const auto catalogue = nlohmann::json::parse(std::ifstream(RATION_CATALOGUE));
  std::size_t known = 0;
  std::size_t all = 0;
  for (const auto &entry : catalogue.at("exports")) {
    for (const char *key : {"symbol", "base"}) {
      ++all;
      known += is_unknown_driver_name(entry.at(key).get<std::string>().c_str()) ? 0 : 1;
    }
  }
  for (const auto &row : catalogue.at("get_proc_address")) {
    ++all;
    known += is_unknown_driver_name(row.at("name").get<std::string>().c_str()) ? 0 : 1;
  }
  std::printf("covered: %zu of %zu\n", known, all);
  CHECK(known == all);
  CHECK(all > 1000);
  CHECK_FALSE(is_unknown_driver_name("cuGLGetDevices_v2"));  // of interop_exports.txt
}

TEST_CASE("a name that is not of the form of a driver's function is not unknown") {
  CHECK(is_unknown_driver_name("cuMemNovelty"));
  CHECK(is_unknown_driver_name("cuMemAlloc_v9_ptsz"));
  CHECK(is_unknown_driver_name(("cuA" + std::string(97, 'a')).c_str()));
  CHECK_FALSE(is_unknown_driver_name(("cuA" + std::string(98, 'a')).c_str()));
  for (const char *name : {"", "c", "cu", "cuda", "cudaMalloc", "cu_Mem", "cu1", "CuMem", "curl_easy_init", "nvmlInit",
                           "cuMem Novelty", "cuMem\nNovelty", "cuMem\x01", "cuMem\xc3\xa4", "cuMem\"", "cuMem@2"}) {
    INFO(name);
    CHECK_FALSE(is_unknown_driver_name(name));
  }
}

TEST_CASE("names of functions that may take memory or begin captures are told from others") {
  for (const char *name :
       {"cuMemNovelty", "cuNewAlloc", "cuFooMalloc", "cuPoolNovelty", "cuGraphNovelty", "cuStreamBeginNewCapture",
        "cuArrayNovelty", "cuCtxNovelty", "cuHeapGrow", "cuImportNovelty", "cuNovelMap", "cuMemAlloc@14000"}) {
    INFO(name);
    CHECK(may_take_memory(name));
  }
  for (const char *name : {"cuDeviceGetNovelty", "cuStreamNovelty", "cuInit", "cuFuncNovelty", ""}) {
    INFO(name);
    CHECK_FALSE(may_take_memory(name));
  }
}

TEST_CASE("a name counts once, and the first are kept") {
  auto names = std::make_unique<RationNames>();
  CHECK(note_name(*names, "cuMemA"));
  CHECK(note_name(*names, "cuDeviceB"));
  CHECK_FALSE(note_name(*names, "cuMemA"));
  CHECK(names->count == 2);
  CHECK(names->of_memory == 1);
  CHECK(kept(*names) == std::vector<std::string>{"cuMemA", "cuDeviceB"});
}

TEST_CASE("beyond the places that there are, names are only counted, and names of memory find room after others") {
  auto names = std::make_unique<RationNames>();
  for (int i = 0; i < 500; ++i) {
    CHECK(note_name(*names, ("cuDevice" + std::to_string(i)).c_str()));
  }
  CHECK(kept(*names).size() == RATION_NAMES_KEPT / 2);
  for (int i = 0; i < 500; ++i) {
    CHECK(note_name(*names, ("cuMem" + std::to_string(i)).c_str()));
  }
  CHECK(names->count == 1000);
  CHECK(names->of_memory == 500);
  CHECK(kept(*names).size() == RATION_NAMES_KEPT);
  CHECK(kept(*names).back() == "cuMem31");
}

TEST_CASE("the count stops before the table is full") {
  auto names = std::make_unique<RationNames>();
  for (int i = 0; i < 5000; ++i) {
    note_name(*names, ("cuMem" + std::to_string(i)).c_str());
  }
  CHECK(names->count == RATION_NAMES_COUNTED);
  CHECK_FALSE(note_name(*names, "cuMemNovelty"));
}

TEST_CASE("a text that is longer than its place is cut off") {
  auto names = std::make_unique<RationNames>();
  CHECK(note_name(*names, std::string(500, 'x').c_str()));
  CHECK(kept(*names) == std::vector<std::string>{std::string(sizeof(RationName::text) - 1, 'x')});
}

TEST_CASE("threads that ask for the same names count each once") {
  auto names = std::make_unique<RationNames>();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&names, thread] {
      for (int i = 0; i < 1000; ++i) {
        note_name(*names, ("cuMem" + std::to_string((i + 125 * thread) % 1000)).c_str());
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(names->count == 1000);
  const std::vector<std::string> texts = kept(*names);
  CHECK(texts.size() == RATION_NAMES_KEPT);
  CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == RATION_NAMES_KEPT);
}
