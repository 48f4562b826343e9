// A context with a capturing stream.
#pragma once

#include "unit/policy/quarantine_fixture.h"

namespace ration::test {

// Each call does what the policy does before and after the driver's call.
struct CaptureRecorder : QuarantineFixture {
  CaptureRecorder() { stream = driver.timeline.open_stream(context->handle); }

  CUresult begin(CUstream of) {
    captures.begin_capture();
    const CUresult result = driver.timeline.begin_capture(of, FakeDriver::current);
    captures.finish_begin(of, result, contexts.find(FakeDriver::current));
    return result;
  }
  CUresult end(CUstream of) {
    const std::uint64_t number = captures.number_of(of, contexts.find(FakeDriver::current));
    const CUresult result = driver.timeline.end_capture(of);
    captures.finish_end(number, result);
    return result;
  }
  // True if the device can be queried now.
  bool is_quiet() {
    const bool quiet = captures.enter();
    if (quiet) {
      captures.leave();
    }
    return quiet;
  }

  CUstream stream;
};

}  // namespace ration::test
